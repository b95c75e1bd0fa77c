// The one place where the engine's structs and the messages of wan.v1 meet.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/api/device_monitor.h"
#include "engine/api/engine.h"
#include "engine/api/generation.h"
#include "engine/api/recorder.h"
#include "google/protobuf/timestamp.pb.h"
#include "google/rpc/status.pb.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {

// Domain of google.rpc.ErrorInfo.
inline constexpr std::string_view kErrorDomain = "wanserve";

// Request of the contract -> request of the engine. Enum values that the engine has no word for are
// left out; ValidateRequest (server/conversion/validation.h) is what refuses them. `image` replaces
// the message's own bytes, so that they are not copied twice; null: no image.
GenerationRequest ToEngineRequest(const wan::v1::GenerationRequest& request,
                                  std::shared_ptr<const std::string> image);

// Resolved request -> message, without the image, and without what only the server knows
// (priority, deadline, request_id, labels).
wan::v1::GenerationRequest ToProto(const GenerationRequest& request);

wan::v1::OutputKind ToProto(OutputKind kind);
wan::v1::Omission ToProto(const Omission& omission);
// Without the server's version, which is the server's to add.
wan::v1::Provenance ProvenanceOf(const GenerationPlan& plan, const DeviceDescription& device);

// An artifact's file name, for example "video.mp4", and content type.
std::string_view ArtifactFileName(OutputKind kind);
std::string_view ArtifactContentType(OutputKind kind);

wan::v1::StageReport ToProto(const SpanRecord& record);

// Progress after a finished step; `eta_seconds` stays unset.
wan::v1::StepProgress ToStepProgress(const SpanRecord& record);

wan::v1::DeviceSample ToProto(const DeviceSample& sample, absl::Time time);

// State and error stay unset.
wan::v1::Model ToProto(const ModelDescription& description);

ModelSpec ToModelSpec(const wan::v1::LoadModelRequest& request);

VideoShape ToVideoShape(const wan::v1::Shape& shape);
wan::v1::Shape ToProto(const VideoShape& shape);

google::protobuf::Timestamp ToProto(absl::Time time);
absl::Time ToTime(const google::protobuf::Timestamp& timestamp);

// With details: BadRequest for FieldViolationsOf, RetryInfo for RetryDelayOf, and ErrorInfo with
// the status' reason, or the name of its code where it has none. OK has no details.
google::rpc::Status ToProto(const absl::Status& status);

// Code and message; details are dropped.
absl::Status ToStatus(const google::rpc::Status& status);

}  // namespace wan::server
