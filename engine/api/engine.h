// The engine as the server sees it. engine/runtime/wan_engine.h implements it;
// tests/fakes/fake_engine.h is the fake that server tests use.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/device_monitor.h"
#include "engine/api/generation.h"
#include "engine/api/input_image.h"
#include "engine/api/lora.h"
#include "engine/api/model_file.h"
#include "engine/api/model_parts.h"
#include "engine/api/recorder.h"
#include "engine/api/savepoint.h"
#include "engine/api/system_facts.h"

namespace wan {

// A model that the server is configured to serve.
struct ModelSpec {
  std::string name;  // the name that requests use
  // Directory of a checkpoint, "synthetic:ti2v-5b", or the files of parts (model_source.h).
  std::string path;
  std::vector<LoraSource> loras = {};
};

struct ComponentDescription {
  ModelComponent component = ModelComponent::kTextEncoder;
  uint64_t bytes = 0;
  uint64_t parameters = 0;
  std::string device;  // for example "cuda:0"
  std::string dtype;   // dtype of the weights in memory: "fp32" or "bf16"
  // The file formats of weights that the engine converted to `dtype`, for example "Q4_K, Q6_K",
  // ordered by their number of tensors; empty if no weights were converted.
  std::string stored_as = {};
};

// Describes a resident model and the defaults for its requests.
struct ModelDescription {
  std::string name;
  std::string path;
  FamilyId family = FamilyId::kTi2v5b;
  std::string layout;  // "original", "diffusers", "synthetic" or "files"
  // Describes a recognised distilled checkpoint, for example "FastWan, by the pipeline class
  // WanDMDPipeline: 3 steps of lcm without guidance". Empty for all other checkpoints.
  std::string distillation;
  std::vector<ComponentDescription> components;
  std::vector<LoraDescription> loras;
  std::vector<SkippedLora> skipped_loras;
  // The files of the checkpoint and of the LoRAs, sorted by name, without duplicates; empty for a
  // synthetic model without LoRAs.
  std::vector<ModelFile> files;
  std::vector<VideoShape> warm_shapes;
  GenerationRequest defaults;  // all optional fields are set, except seed and image
  bool accepts_image = false;
  int spatial_stride = 0;   // width and height must be multiples of this
  int temporal_stride = 0;  // num_frames must be a multiple of this, plus 1
  // Whether requests may ask for Decoder::kTiny.
  bool has_tiny_decoder = false;
  // Why the file of a tiny decoder beside the checkpoint's files cannot be used; OK if there is
  // none, or if the model has it.
  absl::Status tiny_decoder_error = {};
  int experts = 1;  // number of transformers that share the steps: 1 or 2
};

struct DeviceDescription {
  std::string device;  // "cpu" or, for example, "cuda:0"
  std::string name;    // for example "NVIDIA H200"
  std::string dtype;   // compute dtype: "fp32" or "bf16"
  // The libraries that compute, with their versions, for example "LibTorch 2.11.0, cuDNN 91900".
  std::string libraries = {};
  SystemFacts system = {};
  // Floating-point operations per second that jobs on this kind of device reach at least. Estimates
  // use this rate until jobs have been measured; 0: unknown.
  double assumed_rate = 0;
};

// The result of a small computation that checks the device. The same card with the same libraries
// always gives the same bits, unless the card is broken.
struct DeviceCanary {
  // The facts that decide the bits: card, driver, libraries, and the version of the computation.
  std::string setup;
  std::string digest;
};

// An optional part of a generation that could not be made: previews, or an output file other than
// the first.
struct Omission {
  std::optional<OutputKind> output;  // the missing file; absent if previews are missing
  absl::Status status;               // why the file or the previews are missing
};

// Receives the results that a generation produces before it ends. The engine calls the functions on
// its own threads, one call at a time. Implementations must return quickly, because the generation
// waits for them, and must not throw.
class GenerationObserver {
 public:
  virtual ~GenerationObserver() = default;
  virtual void OnPreview(const Preview&) {}
  // Reports that previews or a file could not be made. The engine calls OnOmission once for each
  // file that is lost, and at most once for previews, which end at the first failure.
  virtual void OnOmission(const Omission&) {}
  // Reports that the job continues after its first `steps_done` steps. An earlier attempt computed
  // these steps, or this attempt did before memory ran out. The engine calls OnResumed before the
  // stages that follow.
  virtual void OnResumed(int /*steps_done*/) {}
  // Delivers the next part of the video of a progressive request, while frames are decoded. A part
  // with a codec begins a new stream: if memory runs out, the video is decoded again from its first
  // frame.
  virtual void OnVideoPart(const VideoPart&) {}
};

// Owns the models of one device group and runs their jobs. Only one thread at a time, the group's
// executor, may call LoadModel, UnloadModel, Warmup and Generate. Any thread may call the const
// methods and Monitor() at any time.
//
// A method that fails returns one of these statuses:
//   INVALID_ARGUMENT    The request is wrong; FieldViolationsOf has the violations. Or a checkpoint
//                       or LoRA file is wrong; the message names file and tensor.
//   NOT_FOUND           The model is not known.
//   FAILED_PRECONDITION The model is not resident.
//   DATA_LOSS           A checkpoint or LoRA file is damaged; the message names file and tensor.
//                       Or a result is NaN or infinite (IsNotFinite).
//   CANCELLED           A stop was requested.
//   RESOURCE_EXHAUSTED  Memory ran out.
//   UNAVAILABLE         The device no longer works (IsDeviceLost); every later call fails so.
//   INTERNAL            A library threw anything else.
class Engine {
 public:
  virtual ~Engine() = default;

  // Runs a small computation on the device and compares the result with the CPU's. Returns nullopt
  // if the device needs no check. UNAVAILABLE (DEVICE_LOST) if the device computes wrongly or does
  // not respond. Call RunCanary on the thread that calls LoadModel, before the first model is
  // loaded.
  virtual absl::StatusOr<std::optional<DeviceCanary>> RunCanary() { return std::nullopt; }

  // Makes the model resident, in the span kModelInitialization. If the model is resident from the
  // same path already, LoadModel replaces only its LoRAs, and reads no weights again. After any
  // failure the model then keeps its previous LoRAs. If the name belongs to a resident model from
  // another path, LoadModel checks the new files before it frees that model. If LoadModel refuses
  // the files, that model stays. After any other failure, and after a stop request, no memory of
  // the new model remains.
  virtual absl::Status LoadModel(const ModelSpec& spec, Recorder& recorder,
                                 std::stop_token stop = {}) = 0;
  // Frees the model's memory. NOT_FOUND if no model of this name is resident.
  virtual absl::Status UnloadModel(std::string_view name) = 0;
  // Runs the model once at each shape and discards the results. After Warmup the first job of a
  // shape is as fast as later jobs. If `shapes` is empty, one small shape is run. If CheckWarmup
  // refuses any shape, nothing runs.
  virtual absl::Status Warmup(std::string_view name, std::span<const VideoShape> shapes,
                              std::stop_token stop = {}) = 0;
  // Plans a job for every shape without computing anything. INVALID_ARGUMENT has the violations of
  // all shapes, with field names such as "shapes[0].width".
  virtual absl::Status CheckWarmup(std::string_view name,
                                   std::span<const VideoShape> shapes) const = 0;

  // Checks a request against a resident model, and decides everything about the job: its sizes,
  // steps and stages, and where weights are. INVALID_ARGUMENT carries all violations. Plan reads
  // only the header of an image, so it may accept a damaged image; CheckImage does not.
  virtual absl::StatusOr<GenerationPlan> Plan(const GenerationRequest& request) const = 0;

  // Decodes an image file completely and drops the pixels, so that the server can refuse a damaged
  // image before its job waits for the device. INVALID_ARGUMENT has the violation of the field
  // `image` with which Generate would fail. Returns the file's properties, and what a job does with
  // the image if transparent parts show the colour `background`. The call needs no model and no
  // device. It takes up to a second of the calling thread and 400 MiB of host memory
  // (docs/operate/limits.md).
  virtual absl::StatusOr<InputImage> CheckImage(std::string_view image,
                                                const Color& background) const = 0;

  // Carries out a plan and writes the output files. Frames are decoded only if plan.decodes() is
  // true. If the first file cannot be written, the call fails. Previews and all other files are
  // optional. If an optional output fails, Generate tells the observer, and leaves that file
  // incomplete.
  //
  // With a keeper, which must outlive the call, the job starts at the keeper's latest savepoint and
  // leaves new savepoints. If only decoding is left, Generate does not encode texts and image
  // again.
  //
  // A stop request takes effect in every stage: the call returns CANCELLED within half a second,
  // with the device idle. The sample "stop_seconds" records the time from the stop request to the
  // return. After a failure the caller must remove the files, which may be incomplete.
  virtual absl::Status Generate(const GenerationPlan& plan, std::span<const OutputFile> outputs,
                                Recorder& recorder, GenerationObserver& observer,
                                std::stop_token stop, SavepointKeeper* savepoints = nullptr) = 0;

  // Describes the models that are resident now.
  virtual std::vector<ModelDescription> Models() const = 0;
  virtual DeviceDescription Device() const = 0;
  // Returns the usage figures of the engine's devices; valid as long as the engine lives.
  virtual DeviceMonitor& Monitor() = 0;
};

}  // namespace wan
