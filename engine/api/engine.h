// The engine as the server sees it. Implementation: engine/runtime/wan_engine.h; fake for tests:
// tests/fakes/fake_engine.h.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/device_monitor.h"
#include "engine/api/generation.h"
#include "engine/api/lora.h"
#include "engine/api/recorder.h"

namespace wan {

// A model to serve.
struct ModelSpec {
  std::string name;  // as requests call it
  std::string path;  // directory of a checkpoint, or "synthetic:ti2v-5b"
  std::vector<LoraSource> loras = {};
};

struct ComponentDescription {
  std::string name;  // "text_encoder", "transformer", "vae"
  uint64_t bytes = 0;
  uint64_t parameters = 0;
  std::string device;  // "cpu", "cuda:0"
  std::string dtype;   // of the weights in memory: "fp32", "bf16"
};

// What a resident model is and what its requests default to.
struct ModelDescription {
  std::string name;
  std::string path;
  std::string family;  // "ti2v-5b"
  std::string layout;  // "original", "diffusers", "synthetic"
  std::vector<ComponentDescription> components;
  std::vector<LoraDescription> loras;
  std::vector<VideoShape> warm_shapes;
  GenerationRequest defaults;  // every optional set but seed and image
  bool accepts_image = false;
  int spatial_stride = 0;   // width and height are multiples of this
  int temporal_stride = 0;  // num_frames is this * n + 1
  int experts = 1;
};

struct DeviceDescription {
  std::string device;  // "cpu", "cuda:0"
  std::string name;    // "NVIDIA H200"
  std::string dtype;   // compute dtype: "fp32", "bf16"
};

// Receives what a generation produces besides telemetry. Called on the engine's threads.
class GenerationObserver {
 public:
  virtual ~GenerationObserver() = default;
  virtual void OnPreview(const Preview&) {}
};

// One device group's models. LoadModel, UnloadModel, Warmup and Generate are called by one thread
// at a time (the group's executor); the const methods and Monitor() by any thread at any time.
//
// Statuses: INVALID_ARGUMENT (with FieldViolationsOf) for requests; NOT_FOUND for unknown models;
// FAILED_PRECONDITION for models not resident; DATA_LOSS or INVALID_ARGUMENT naming file and tensor
// for damaged checkpoints and LoRA files; CANCELLED after a stop request; RESOURCE_EXHAUSTED for
// out of memory; INTERNAL for what a library threw.
class Engine {
 public:
  virtual ~Engine() = default;

  // Reads, checks and makes resident (span Model_Initialization). On failure nothing stays behind.
  virtual absl::Status LoadModel(const ModelSpec& spec, Recorder& recorder) = 0;
  virtual absl::Status UnloadModel(std::string_view name) = 0;
  // Runs the model at each shape once, discarding the result. Empty: a small shape.
  virtual absl::Status Warmup(std::string_view name, std::span<const VideoShape> shapes) = 0;

  // Checks a request against a resident model and decides everything. Every violation at once.
  virtual absl::StatusOr<GenerationPlan> Plan(const GenerationRequest& request) const = 0;

  // Carries a plan out, which says whether frames are made, and writes every output file. A stop
  // request is looked at between steps and between decoded chunks and ends the call with CANCELLED.
  // Half-written files are the caller's to remove.
  virtual absl::Status Generate(const GenerationPlan& plan, std::span<const OutputFile> outputs,
                                Recorder& recorder, GenerationObserver& observer,
                                std::stop_token stop) = 0;

  // Resident models.
  virtual std::vector<ModelDescription> Models() const = 0;
  virtual DeviceDescription Device() const = 0;
  virtual DeviceMonitor& Monitor() = 0;
};

}  // namespace wan
