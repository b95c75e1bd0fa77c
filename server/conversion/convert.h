// Converts between the engine's structs and the messages of wan.v1.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/api/device_monitor.h"
#include "engine/api/engine.h"
#include "engine/api/generation.h"
#include "engine/api/lora.h"
#include "engine/api/recorder.h"
#include "google/protobuf/timestamp.pb.h"
#include "google/rpc/status.pb.h"
#include "server/conversion/job_inputs.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {

// The domain of every google.rpc.ErrorInfo that the server sends.
inline constexpr std::string_view kErrorDomain = "wanserve";

// Converts a request message. Leaves out enum values that the engine does not know, because
// ValidateRequest (server/conversion/validation.h) refuses them. Takes the files from `inputs`, not
// from the message.
GenerationRequest ToEngineRequest(const wan::v1::GenerationRequest& request, JobInputs inputs = {});

// Converts the stored request of a job, whose size is exact. `inputs` has the request's files.
GenerationRequest RequestOf(const wan::v1::Job& job, JobInputs inputs = {});

// Returns the word of a stored request's quality. Requests that were stored before the field
// `quality` existed were computed with the quality exact.
std::string_view QualityOf(const wan::v1::GenerationRequest& stored);

// Converts a resolved request, without its files and the fields that the engine does not have
// (priority, deadline, request_id, labels).
wan::v1::GenerationRequest ToProto(const GenerationRequest& request);

wan::v1::InputImage ToProto(const InputImage& image);
wan::v1::OutputKind ToProto(OutputKind kind);
wan::v1::Omission ToProto(const Omission& omission);
// Sets all fields except server_version.
wan::v1::Provenance ProvenanceOf(const GenerationPlan& plan, const DeviceDescription& device);

// Returns the file name of an artifact of this kind, for example "video.mp4"; the next function
// returns its content type.
std::string_view ArtifactFileName(OutputKind kind);
std::string_view ArtifactContentType(OutputKind kind);

wan::v1::StageReport ToProto(const SpanRecord& record);

// Returns the progress after the step that `record` describes. Sets all fields except
// `eta_seconds`.
wan::v1::StepProgress ToStepProgress(const SpanRecord& record);

wan::v1::DeviceSample ToProto(const DeviceSample& sample, absl::Time time);

// Sets all fields except state and error.
wan::v1::Model ToProto(const ModelDescription& description);

wan::v1::Lora ToProto(const LoraDescription& description);
wan::v1::SkippedLora ToProto(const SkippedLora& skipped);
// Does not check the values.
LoraSchedule ToLoraSchedule(const wan::v1::LoraSchedule& message);

// The changes that a caller wants in the list of a model's LoRAs.
struct LoraEdits {
  std::vector<LoraSource> add;      // each replaces the LoRA of the same name and expert
  std::vector<std::string> remove;  // names of LoRAs

  bool empty() const { return add.empty() && remove.empty(); }
};

// ToModelSpec and ToLoraEdits fail with INVALID_ARGUMENT and a violation for each LoRA whose expert
// does not exist. ToLoraEdits also fails if the request has edits together with a path or a list of
// LoRAs.
absl::StatusOr<ModelSpec> ToModelSpec(const wan::v1::LoadModelRequest& request);
absl::StatusOr<LoraEdits> ToLoraEdits(const wan::v1::LoadModelRequest& request);

VideoShape ToVideoShape(const wan::v1::Shape& shape);
wan::v1::Shape ToProto(const VideoShape& shape);

google::protobuf::Timestamp ToProto(absl::Time time);
absl::Time ToTime(const google::protobuf::Timestamp& timestamp);

// Converts an error with its details: BadRequest (from FieldViolationsOf), QuotaFailure (from
// QuotaFailureOf), RetryInfo (from RetryDelayOf), and ErrorInfo with the status' reason; without a
// reason ErrorInfo has the name of the code.
google::rpc::Status ToProto(const absl::Status& status);

// Returns the reason in the status' ErrorInfo, which is one of the constants in errors.h or the
// name of the status' code.
std::string ErrorReasonOf(const google::rpc::Status& status);

}  // namespace wan::server
