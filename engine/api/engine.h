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

// A model to serve.
struct ModelSpec {
  std::string name;  // the name that requests use
  std::string path;  // directory of a checkpoint, or "synthetic:ti2v-5b"
  std::vector<LoraSource> loras = {};
};

struct ComponentDescription {
  ModelComponent component = ModelComponent::kTextEncoder;
  uint64_t bytes = 0;
  uint64_t parameters = 0;
  std::string device;  // "cpu", "cuda:0"
  std::string dtype;   // of the weights in memory: "fp32", "bf16"
};

// Describes a resident model and the defaults of its requests.
struct ModelDescription {
  std::string name;
  std::string path;
  FamilyId family = FamilyId::kTi2v5b;
  std::string layout;  // "original", "diffusers", "synthetic"
  std::vector<ComponentDescription> components;
  std::vector<LoraDescription> loras;
  // The files of the checkpoint and the LoRAs, sorted by name, each name once; empty for a
  // synthetic model without LoRAs.
  std::vector<ModelFile> files;
  std::vector<VideoShape> warm_shapes;
  GenerationRequest defaults;  // every optional field is set, except seed and image
  bool accepts_image = false;
  int spatial_stride = 0;   // width and height are multiples of this
  int temporal_stride = 0;  // num_frames is a multiple of this, plus 1
  int experts = 1;          // transformers that share the steps: 1 or 2
};

struct DeviceDescription {
  std::string device;  // "cpu", "cuda:0"
  std::string name;    // "NVIDIA H200"
  std::string dtype;   // compute dtype: "fp32", "bf16"
  // The libraries that compute, with their versions: "LibTorch 2.11.0, cuDNN 91900".
  std::string libraries = {};
  SystemFacts system = {};
  // Floating-point operations a second that jobs reach at least on a device of this kind, for
  // estimates before anything was measured; 0: unknown.
  double assumed_rate = 0;
};

// The result of a small computation on the device. The same card with the same libraries always
// gives the same bits; a card that does not is broken.
struct DeviceCanary {
  // Everything on which the bits depend: card, driver, libraries, version of the computation.
  std::string setup;
  std::string digest;
};

// An optional part of a generation that failed: the previews, or an output file other than the
// first.
struct Omission {
  std::optional<OutputKind> output;  // the missing file; absent for previews
  absl::Status status;               // why it is missing
};

// Receives the results that a generation hands out before it ends. The engine calls it on its own
// threads, one call at a time. An implementation must return quickly, because the work waits for
// it, and must not throw.
class GenerationObserver {
 public:
  virtual ~GenerationObserver() = default;
  virtual void OnPreview(const Preview&) {}
  // Called at most once for the previews, which end at the first failure, and once for each lost
  // file.
  virtual void OnOmission(const Omission&) {}
  // The work continues after the first `steps_done` steps, which an earlier attempt computed, or
  // this one before memory ran out. Called before the stages that follow.
  virtual void OnResumed(int /*steps_done*/) {}
};

// Owns the models of one device group. LoadModel, UnloadModel, Warmup and Generate may be called by
// one thread at a time (the group's executor calls them); any thread may call the const methods and
// Monitor() at any time.
//
// A method that fails returns one of these statuses: INVALID_ARGUMENT for a wrong request (the
// violations are in FieldViolationsOf); NOT_FOUND for an unknown model; FAILED_PRECONDITION for a
// model that is not resident; DATA_LOSS or INVALID_ARGUMENT, naming file and tensor, for a damaged
// checkpoint or LoRA file; CANCELLED after a stop request; RESOURCE_EXHAUSTED when memory runs out;
// UNAVAILABLE (IsDeviceLost) when the device no longer works, after which every call fails so;
// INTERNAL when a library throws anything else; DATA_LOSS (IsNotFinite) for NaN and infinity.
class Engine {
 public:
  virtual ~Engine() = default;

  // Runs the small computation and compares its result with the CPU's. Returns nullopt if the
  // device needs no such check; UNAVAILABLE (DEVICE_LOST) if it computes wrongly or not at all.
  // Call it on the thread of LoadModel, before the first model.
  virtual absl::StatusOr<std::optional<DeviceCanary>> RunCanary() { return std::nullopt; }

  // Makes the model resident, in the span kModelInitialization. A resident model of this name goes
  // once the new files are checked; if these are refused, it stays as it was. After any other
  // failure, and after a stop request, nothing of the model is left in memory.
  virtual absl::Status LoadModel(const ModelSpec& spec, Recorder& recorder,
                                 std::stop_token stop = {}) = 0;
  // Frees the model's memory. NOT_FOUND if no resident model has this name.
  virtual absl::Status UnloadModel(std::string_view name) = 0;
  // Runs the model once at each shape and discards the results, so that the first job of such a
  // shape is as quick as later ones. An empty list means one small shape. Nothing runs unless
  // CheckWarmup accepts all shapes.
  virtual absl::Status Warmup(std::string_view name, std::span<const VideoShape> shapes,
                              std::stop_token stop = {}) = 0;
  // Plans a job of every shape and computes nothing. INVALID_ARGUMENT with the violations of all
  // shapes; a field is "shapes[0].width".
  virtual absl::Status CheckWarmup(std::string_view name,
                                   std::span<const VideoShape> shapes) const = 0;

  // Checks a request against a resident model and decides everything about the job: sizes, steps,
  // stages and where weights live. INVALID_ARGUMENT carries every violation, not only the first.
  // Of an image it reads the header alone, so that a damaged one may be planned: see CheckImage.
  virtual absl::StatusOr<GenerationPlan> Plan(const GenerationRequest& request) const = 0;

  // Decodes an image file wholly and drops its pixels, so that a damaged one is refused before its
  // job has waited for the device, where Generate would fail with the same violation of `image`.
  // Returns what the file holds, and what a job does with it over `background`. It needs no model
  // and no device, and takes up to about a second of the calling thread and 400 MiB of host memory:
  // docs/operate/limits.md says which files do.
  virtual absl::StatusOr<InputImage> CheckImage(std::string_view image,
                                                const Color& background) const = 0;

  // Carries a plan out and writes the output files; frames are decoded only if plan.decodes(). If
  // the first file cannot be written, the call fails. Previews and the other files are optional:
  // the observer is told of those that failed, and their files are not whole.
  //
  // With a keeper, which must outlive the call, the job starts at its latest savepoint and leaves
  // savepoints as it goes. Texts and image are not encoded if only decoding is left.
  //
  // A stop request takes effect in every stage: the call returns CANCELLED within half a second,
  // and the device is free. The sample "stop_seconds" says how long that took. After a failure the
  // caller must remove half-written files.
  virtual absl::Status Generate(const GenerationPlan& plan, std::span<const OutputFile> outputs,
                                Recorder& recorder, GenerationObserver& observer,
                                std::stop_token stop, SavepointKeeper* savepoints = nullptr) = 0;

  // Describes the models that are resident now.
  virtual std::vector<ModelDescription> Models() const = 0;
  virtual DeviceDescription Device() const = 0;
  // The counters of the engine's device; valid as long as the engine lives.
  virtual DeviceMonitor& Monitor() = 0;
};

}  // namespace wan
