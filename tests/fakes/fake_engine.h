// An engine that computes nothing: it goes through the stages of a real engine, as a test tells it
// to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/engine.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_device_monitor.h"

namespace wan::fakes {

// Generate has these stages, each of them a span: TI2V_Preprocess, T5_Encoding, VAE_Encoding (if
// there is an image), for each step Step_N_Loading and Step_N_Inference, VAE_Decoding,
// Video_Encoding. LoadModel has the stage Model_Initialization. The stages take no time unless a
// test calls TakeTime.
//
// Its models have these defaults: 64x32, 5 frames, 24 fps, 3 steps, guidance 5, shift 5, "unipc";
// strides 32 and 4; an image can be planned if its bytes begin with "PNG". If they begin with "PNG
// tall", width and height of the video are exchanged, unless the request's size is exact.
// CheckImage refuses an image that begins with "PNG damaged"; it says of every other that it is
// 64x32, partly transparent, 16 bits deep, and turned (orientation 6). If a model's path is a
// folder, its files are those of the folder. Plan reports every violation of the fields model,
// prompt, image, width, height, num_frames, fps, steps, guidance_scale and shift.
//
// The savepoint of a job with seed s after n steps is the text "seed s step n"; Generate continues
// a savepoint that has its own seed, and refuses others.
//
// Tests name a stage as clients see it (NameOf), so that the tests also check the names of the
// contract.
//
// The artifact of kind k of a job with seed s is the text "k seed s" (k is mp4, mkv or latents).
//
// The video of a progressive job, while it is made, is the texts "header of seed s;" and "first of
// seed s;" before VAE_Decoding, "VAE_Decoding of seed s;" after it, and "Video_Encoding of seed s;"
// at the end.
//
// Thread-safe.
class FakeEngine final : public Engine {
 public:
  // If `clock` is not null, TakeTime moves it.
  explicit FakeEngine(FakeClock* clock = nullptr);

  // From now on the engine stops inside every span of `stage` until Release, or until it is asked
  // to stop. "Warmup", "Plan" and "CheckImage" work as well; these are calls without a span.
  void Hold(std::string_view stage);
  // From now on the engine ignores requests to stop while it is held.
  void HearNoStop();
  // Waits until the engine is held in `stage`.
  void AwaitHeld(std::string_view stage);
  // Lets the engine go on, and does not hold it at `stage` any more.
  void Release(std::string_view stage);

  // The next span of `stage` ends with `status`, and so does the call of Generate, LoadModel or
  // Warmup.
  void FailAt(std::string_view stage, absl::Status status);
  // The next span of `stage` ends with DEVICE_LOST; from then on, so does every call that needs the
  // device.
  void LoseDeviceAt(std::string_view stage);
  // Sets what RunCanary returns; at first it returns nothing.
  void SetCanary(absl::StatusOr<std::optional<DeviceCanary>> canary);
  // Sets the device's name in Device() from now on; a service asks for it when the service is
  // opened.
  void NameDevice(std::string name);
  // The next span of `stage` throws std::runtime_error(what).
  void ThrowAt(std::string_view stage, std::string what);
  // Every later span of the kind ("Step_Inference" for all steps) moves the clock by `duration`.
  void TakeTime(std::string_view kind, absl::Duration duration);
  // From now on, plans have `batches` as batched_guidance unless the request has a value; without
  // `fits` there is never a batch. At first a batch fits, and plans have none.
  void PlanGuidance(bool batches, bool fits = true);
  // Sets the rate that jobs reach at least according to Device(); at first 0, which means unknown.
  // Call it before anybody else uses the engine.
  void AssumeRate(double rate) { assumed_rate_ = rate; }
  // From now on every artifact is filled up with spaces to at least `bytes` bytes.
  void PadOutputs(size_t bytes);
  // From now on every artifact of the kind has these bytes.
  void WriteOutputs(OutputKind kind, std::string bytes);
  // From now on every part of a video while it is made is filled up with spaces to `bytes` bytes.
  void PadParts(size_t bytes);
  // From now on the engine does not write the output of this kind.
  void SkipOutput(OutputKind kind);
  // After writing the files, the engine reports an omission: the file of this kind is then
  // incomplete, as can happen to all of the real engine's outputs except the first; nullopt: the
  // previews are omitted.
  void LoseOutput(std::optional<OutputKind> kind, absl::Status status);

  // Returns the resolved requests of all calls of Generate so far, in order.
  std::vector<GenerationRequest> Generated() const;
  int Loads() const;
  // Returns the arguments of all calls of LoadModel, whether the calls succeeded or not.
  std::vector<ModelSpec> Loaded() const;
  int Warmups() const;
  int Plans() const;
  // Returns the arguments of all calls of CheckImage, in order.
  std::vector<std::string> CheckedImages() const;

  FakeDeviceMonitor& monitor() { return monitor_; }

  absl::StatusOr<std::optional<DeviceCanary>> RunCanary() override;
  absl::Status LoadModel(const ModelSpec& spec, Recorder& recorder,
                         std::stop_token stop = {}) override;
  absl::Status UnloadModel(std::string_view name) override;
  absl::Status Warmup(std::string_view name, std::span<const VideoShape> shapes,
                      std::stop_token stop = {}) override;
  absl::Status CheckWarmup(std::string_view name,
                           std::span<const VideoShape> shapes) const override;
  absl::StatusOr<GenerationPlan> Plan(const GenerationRequest& request) const override;
  absl::StatusOr<InputImage> CheckImage(std::string_view image,
                                        const Color& background) const override;
  absl::Status Generate(const GenerationPlan& plan, std::span<const OutputFile> outputs,
                        Recorder& recorder, GenerationObserver& observer, std::stop_token stop,
                        SavepointKeeper* savepoints = nullptr) override;
  std::vector<ModelDescription> Models() const override;
  DeviceDescription Device() const override;
  DeviceMonitor& Monitor() override { return monitor_; }

 private:
  // Returns the number of steps in the job's savepoint; 0 if there is none. Fails with the keeper's
  // errors.
  static absl::StatusOr<int> StepsDone(const GenerationPlan& plan, GenerationObserver& observer,
                                       SavepointKeeper* savepoints);
  // Shows the observer the next part of a progressive job's video; a codec begins it.
  void SendPart(const GenerationPlan& plan, GenerationObserver& observer, std::string_view text,
                const std::string& codec = {}) const;
  // Runs one stage of Generate or LoadModel, with its span.
  absl::Status RunStage(Stage stage, Recorder& recorder, const std::stop_token& stop,
                        std::shared_ptr<const StepFacts> step = nullptr);
  // Holds, takes the time of the kind, fails and throws, as the test has told.
  absl::Status Act(std::string_view stage, std::string_view kind,
                   const std::stop_token& stop) const;

  FakeClock* const clock_;
  double assumed_rate_ = 0;
  FakeDeviceMonitor monitor_;
  mutable absl::Mutex mutex_;
  std::set<std::string, std::less<>> held_ ABSL_GUARDED_BY(mutex_);
  bool hears_no_stop_ ABSL_GUARDED_BY(mutex_) = false;
  mutable std::multiset<std::string, std::less<>> standing_ ABSL_GUARDED_BY(mutex_);
  mutable std::map<std::string, absl::Status, std::less<>> failures_ ABSL_GUARDED_BY(mutex_);
  mutable std::map<std::string, std::string, std::less<>> throws_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::Duration, std::less<>> durations_ ABSL_GUARDED_BY(mutex_);
  size_t output_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t part_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string losing_stage_ ABSL_GUARDED_BY(mutex_);
  mutable bool device_lost_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusOr<std::optional<DeviceCanary>> canary_ ABSL_GUARDED_BY(mutex_) = std::nullopt;
  std::string device_name_ ABSL_GUARDED_BY(mutex_) = "Fake CPU";
  std::set<OutputKind> skipped_ ABSL_GUARDED_BY(mutex_);
  std::map<OutputKind, std::string> outputs_ ABSL_GUARDED_BY(mutex_);  // see WriteOutputs
  std::vector<Omission> omissions_ ABSL_GUARDED_BY(mutex_);
  std::vector<GenerationRequest> generated_ ABSL_GUARDED_BY(mutex_);
  mutable std::vector<std::string> checked_images_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, ModelDescription, std::less<>> models_ ABSL_GUARDED_BY(mutex_);
  bool batches_guidance_ ABSL_GUARDED_BY(mutex_) = false;
  bool batch_fits_ ABSL_GUARDED_BY(mutex_) = true;
  mutable int64_t next_seed_ ABSL_GUARDED_BY(mutex_) = 1000;
  std::vector<ModelSpec> loaded_ ABSL_GUARDED_BY(mutex_);
  int loads_ ABSL_GUARDED_BY(mutex_) = 0;
  int warmups_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable int plans_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace wan::fakes
