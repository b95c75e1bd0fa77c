// An engine that computes nothing: it goes through the stages of a real one as a test tells it to.
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

// Stages of Generate, each a span: TI2V_Preprocess, T5_Encoding, VAE_Encoding (with an image), per
// step Step_N_Loading and Step_N_Inference, VAE_Decoding, Video_Encoding. LoadModel has
// Model_Initialization. Stages take no time unless told.
//
// Defaults of its models: 64x32, 5 frames, 24 fps, 3 steps, guidance 5, shift 5, "unipc"; strides
// 32 and 4; images are planned if they begin with "PNG". One that begins with "PNG tall" makes
// width and height of the video change places, unless the request's size is exact. CheckImage
// refuses one that begins with "PNG damaged"; every other is 64x32, transparent in part, 16 bits
// deep, and turned (orientation 6). A model whose
// path is a folder was read from that folder's files. Plan reports every violation of model,
// prompt, image, width, height, num_frames, fps, steps, guidance_scale and shift.
//
// A savepoint of a seed s behind n steps is the text "seed s step n"; Generate goes on from one of
// its own seed and refuses others.
//
// Tests name a stage as clients see it (NameOf), so that they hold the names of the contract.
//
// An artifact of a seed s and kind k is the text "k seed s" (k: mp4, mkv, latents).
//
// Thread-safe.
class FakeEngine final : public Engine {
 public:
  // With a clock, TakeTime moves it.
  explicit FakeEngine(FakeClock* clock = nullptr);

  // The engine stops inside every later span of `stage` until Release, or until it is asked
  // to stop. Also "Warmup", "Plan" and "CheckImage", which are calls without a span.
  void Hold(std::string_view stage);
  // From now on the engine hears no request to stop while it is held.
  void HearNoStop();
  // Waits until the engine stands in `stage`.
  void AwaitHeld(std::string_view stage);
  // Lets go on, and holds at `stage` no more.
  void Release(std::string_view stage);

  // The next span of `stage` ends with `status` (and Generate, LoadModel or Warmup with it).
  void FailAt(std::string_view stage, absl::Status status);
  // The next span of `stage` ends with DEVICE_LOST, and from then on every call that needs the
  // device does.
  void LoseDeviceAt(std::string_view stage);
  // What RunCanary gives; nothing unless told.
  void SetCanary(absl::StatusOr<std::optional<DeviceCanary>> canary);
  // What Device() has as the device's name from now on; a service asks when it is opened.
  void NameDevice(std::string name);
  // The next span of `stage` throws std::runtime_error(what).
  void ThrowAt(std::string_view stage, std::string what);
  // Every later span of the kind ("Step_Inference" for that of every step) moves the clock by this.
  void TakeTime(std::string_view kind, absl::Duration duration);
  // What Device() says that jobs reach at least; 0, unknown, unless told. Before the engine is
  // given to anybody.
  void AssumeRate(double rate) { assumed_rate_ = rate; }
  // Every later artifact is filled up with spaces to at least so many bytes.
  void PadOutputs(size_t bytes);
  // Leaves the named output kind unwritten.
  void SkipOutput(OutputKind kind);
  // Tells of an omission after the files are written: the file of the kind is not whole then, as
  // with the engine's outputs but the first; nullopt: previews.
  void LoseOutput(std::optional<OutputKind> kind, absl::Status status);

  // Every Generate so far, in order: its resolved request.
  std::vector<GenerationRequest> Generated() const;
  int Loads() const;
  // What LoadModel was asked for, whether it went well or not.
  std::vector<ModelSpec> Loaded() const;
  int Warmups() const;
  int Plans() const;
  // What CheckImage was asked for, in order.
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
  // The steps that a savepoint holds; 0 without one.
  static int StepsDone(const GenerationPlan& plan, GenerationObserver& observer,
                       SavepointKeeper* savepoints);
  // One span of Generate or LoadModel.
  absl::Status RunStage(Stage stage, Recorder& recorder, const std::stop_token& stop,
                        std::shared_ptr<const StepFacts> step = nullptr);
  // Holds, takes time (that of the kind), fails and throws as told.
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
  std::string losing_stage_ ABSL_GUARDED_BY(mutex_);
  mutable bool device_lost_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusOr<std::optional<DeviceCanary>> canary_ ABSL_GUARDED_BY(mutex_) = std::nullopt;
  std::string device_name_ ABSL_GUARDED_BY(mutex_) = "Fake CPU";
  std::set<OutputKind> skipped_ ABSL_GUARDED_BY(mutex_);
  std::vector<Omission> omissions_ ABSL_GUARDED_BY(mutex_);
  std::vector<GenerationRequest> generated_ ABSL_GUARDED_BY(mutex_);
  mutable std::vector<std::string> checked_images_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, ModelDescription, std::less<>> models_ ABSL_GUARDED_BY(mutex_);
  mutable int64_t next_seed_ ABSL_GUARDED_BY(mutex_) = 1000;
  std::vector<ModelSpec> loaded_ ABSL_GUARDED_BY(mutex_);
  int loads_ ABSL_GUARDED_BY(mutex_) = 0;
  int warmups_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable int plans_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace wan::fakes
