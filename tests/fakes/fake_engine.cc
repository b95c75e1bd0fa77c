#include "tests/fakes/fake_engine.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "engine/api/h264.h"
#include "engine/api/request_defaults.h"

namespace wan::fakes {
namespace {

constexpr char kWarmup[] = "Warmup";
constexpr char kPlan[] = "Plan";
constexpr char kCheckImage[] = "CheckImage";
constexpr FamilyId kFamily = FamilyId::kTi2v5b;
constexpr char kImageMark[] = "PNG";
constexpr char kTallImageMark[] = "PNG tall";
constexpr char kDamagedImageMark[] = "PNG damaged";
// With this an output of latents begins as well.
constexpr char kLatentsMark[] = "latents";
// The operations of each stage: the same for all, so that all take equally long in estimates.
constexpr double kStageFlops = 1e9;

std::string_view NameOf(OutputKind kind) {
  switch (kind) {
    case OutputKind::kMp4:
      return "mp4";
    case OutputKind::kLosslessMkv:
      return "mkv";
    case OutputKind::kLatents:
      return "latents";
  }
  return "";
}

// Removes the entry with the key and returns its value; a default value if there is none.
template <typename Map>
typename Map::mapped_type Take(Map& map, std::string_view key) {
  const auto found = map.find(key);
  if (found == map.end()) return {};
  typename Map::mapped_type value = std::move(found->second);
  map.erase(found);
  return value;
}

std::vector<FieldViolation> Check(const GenerationRequest& request, const ModelDescription& model) {
  std::vector<FieldViolation> violations;
  const auto check = [&](bool fine, const char* field, std::string description) {
    if (!fine) violations.push_back({field, std::move(description)});
  };
  const auto size = [&](const std::optional<int>& value, const char* field) {
    check(!value || (*value > 0 && *value % model.spatial_stride == 0), field,
          absl::StrCat("must be a positive multiple of ", model.spatial_stride, ", got ",
                       value.value_or(0)));
  };
  const bool only_decodes = request.latents != nullptr && request.steps == 0;
  check(!request.prompt.empty() || only_decodes, "prompt", "must not be empty");
  for (const auto& [file, field] : {std::pair(request.initial_latents, "initial_latents"),
                                    std::pair(request.latents, "latents")}) {
    check(file == nullptr || file->starts_with(kLatentsMark), field, "is not a file of latents");
  }
  check(request.image == nullptr || absl::StartsWith(*request.image, kImageMark), "image",
        "is not a PNG, JPEG or WebP file");
  size(request.width, "width");
  size(request.height, "height");
  check(!request.num_frames ||
            (*request.num_frames > 0 && *request.num_frames % model.temporal_stride == 1),
        "num_frames", absl::StrCat("must be 4n + 1, got ", request.num_frames.value_or(0)));
  check(!request.fps || (*request.fps >= 1 && *request.fps <= 120), "fps", "must be 1 to 120");
  check(!request.h264_crf ||
            (*request.h264_crf >= kBestH264Crf && *request.h264_crf <= kWorstH264Crf),
        "h264_crf", "must be 1 to 51");
  check(!request.steps || only_decodes || (*request.steps >= 1 && *request.steps <= 1000), "steps",
        "must be 1 to 1000");
  check(request.guidance_scale.size() <= 1, "guidance_scale", "takes one value");
  for (const double scale : request.guidance_scale) {
    check(scale >= 0 && scale <= 100, "guidance_scale[0]", "must be 0 to 100");
  }
  check(!request.shift || (*request.shift > 0 && *request.shift <= 100), "shift",
        "must be above 0, at most 100");
  check(request.preview_interval >= 0, "preview_interval", "must be 0 or more");
  return violations;
}

GenerationRequest Resolve(const GenerationRequest& request, const GenerationRequest& defaults,
                          int64_t seed) {
  GenerationRequest resolved = request;
  FillUnset(defaults, resolved);
  if (!resolved.seed) resolved.seed = seed;
  if (resolved.image != nullptr && !resolved.background) resolved.background = Color();
  const bool tall = resolved.image != nullptr && absl::StartsWith(*resolved.image, kTallImageMark);
  if (tall && !resolved.size_is_exact) std::swap(resolved.width, resolved.height);
  resolved.size_is_exact = true;
  return resolved;
}

// Returns the files of a folder; none if there is no such folder.
std::vector<ModelFile> FilesOf(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<ModelFile> files;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = entry.path().string();
    files.push_back({entry.path().lexically_relative(folder).generic_string(), path,
                     FileVersion::Of(path).value()});
  }
  std::sort(files.begin(), files.end(),
            [](const ModelFile& a, const ModelFile& b) { return a.name < b.name; });
  return files;
}

}  // namespace

FakeEngine::FakeEngine(FakeClock* clock) : clock_(clock) {}

void FakeEngine::Hold(std::string_view stage) {
  absl::MutexLock lock(&mutex_);
  held_.emplace(stage);
}

void FakeEngine::HearNoStop() {
  absl::MutexLock lock(&mutex_);
  hears_no_stop_ = true;
}

void FakeEngine::AwaitHeld(std::string_view stage) {
  absl::MutexLock lock(&mutex_);
  const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return standing_.contains(stage);
  };
  mutex_.Await(absl::Condition(&there));
}

void FakeEngine::Release(std::string_view stage) {
  absl::MutexLock lock(&mutex_);
  const auto found = held_.find(stage);
  if (found != held_.end()) held_.erase(found);
}

void FakeEngine::FailAt(std::string_view stage, absl::Status status) {
  absl::MutexLock lock(&mutex_);
  failures_[std::string(stage)] = std::move(status);
}

void FakeEngine::LoseDeviceAt(std::string_view stage) {
  absl::MutexLock lock(&mutex_);
  losing_stage_ = std::string(stage);
}

void FakeEngine::SetCanary(absl::StatusOr<std::optional<DeviceCanary>> canary) {
  absl::MutexLock lock(&mutex_);
  canary_ = std::move(canary);
}

absl::StatusOr<std::optional<DeviceCanary>> FakeEngine::RunCanary() {
  absl::MutexLock lock(&mutex_);
  return canary_;
}

void FakeEngine::ThrowAt(std::string_view stage, std::string what) {
  absl::MutexLock lock(&mutex_);
  throws_[std::string(stage)] = std::move(what);
}

void FakeEngine::TakeTime(std::string_view kind, absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  durations_[std::string(kind)] = duration;
}

void FakeEngine::PadOutputs(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  output_bytes_ = bytes;
}

void FakeEngine::PadParts(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  part_bytes_ = bytes;
}

void FakeEngine::WriteOutputs(OutputKind kind, std::string bytes) {
  absl::MutexLock lock(&mutex_);
  outputs_[kind] = std::move(bytes);
}

void FakeEngine::SkipOutput(OutputKind kind) {
  absl::MutexLock lock(&mutex_);
  skipped_.insert(kind);
}

void FakeEngine::LoseOutput(std::optional<OutputKind> kind, absl::Status status) {
  absl::MutexLock lock(&mutex_);
  omissions_.push_back({kind, std::move(status)});
}

std::vector<GenerationRequest> FakeEngine::Generated() const {
  absl::MutexLock lock(&mutex_);
  return generated_;
}

int FakeEngine::Loads() const {
  absl::MutexLock lock(&mutex_);
  return loads_;
}

std::vector<ModelSpec> FakeEngine::Loaded() const {
  absl::MutexLock lock(&mutex_);
  return loaded_;
}

std::vector<std::string> FakeEngine::CheckedImages() const {
  absl::MutexLock lock(&mutex_);
  return checked_images_;
}

void FakeEngine::PlanGuidance(bool batches, bool fits) {
  absl::MutexLock lock(&mutex_);
  batches_guidance_ = batches;
  batch_fits_ = fits;
}

int FakeEngine::Plans() const {
  absl::MutexLock lock(&mutex_);
  return plans_;
}

int FakeEngine::Warmups() const {
  absl::MutexLock lock(&mutex_);
  return warmups_;
}

absl::Status FakeEngine::LoadModel(const ModelSpec& spec, Recorder& recorder,
                                   std::stop_token stop) {
  {
    absl::MutexLock lock(&mutex_);
    loaded_.push_back(spec);
  }
  absl::Status status = RunStage(StageKind::kModelInitialization, recorder, stop);
  if (!status.ok()) return status;
  if (stop.stop_requested()) return absl::CancelledError("stopped while loading");
  ModelDescription model;
  model.name = spec.name;
  model.path = spec.path;
  model.family = kFamily;
  model.layout = "synthetic";
  model.files = FilesOf(spec.path);
  model.components = {{ModelComponent::kTextEncoder, 300, 150, "cpu", "fp32"},
                      {ModelComponent::kTransformer, 500, 250, "cpu", "fp32"},
                      {ModelComponent::kVae, 200, 100, "cpu", "fp32"}};
  model.defaults.model = spec.name;
  model.defaults.negative_prompt = "bad quality";
  model.defaults.width = 64;
  model.defaults.height = 32;
  model.defaults.num_frames = 5;
  model.defaults.fps = 24;
  model.defaults.steps = 3;
  model.defaults.guidance_scale = {5.0};
  model.defaults.shift = 5.0;
  model.defaults.solver = "unipc";
  model.defaults.outputs = {OutputKind::kMp4};
  SetOperatorDefaults(EngineOptions(), model.defaults);
  model.accepts_image = true;
  model.spatial_stride = 32;
  model.temporal_stride = 4;
  absl::MutexLock lock(&mutex_);
  ++loads_;
  models_[spec.name] = std::move(model);
  return absl::OkStatus();
}

absl::Status FakeEngine::UnloadModel(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) return absl::NotFoundError("no such model");
  models_.erase(found);
  return absl::OkStatus();
}

absl::Status FakeEngine::CheckWarmup(std::string_view name,
                                     std::span<const VideoShape> shapes) const {
  absl::MutexLock lock(&mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("model '", std::string(name), "' is not loaded"));
  }
  std::vector<FieldViolation> violations;
  for (size_t i = 0; i < shapes.size(); ++i) {
    GenerationRequest request;
    request.prompt = "warm-up";
    request.width = shapes[i].width;
    request.height = shapes[i].height;
    request.num_frames = shapes[i].num_frames;
    for (const FieldViolation& violation : Check(request, found->second)) {
      violations.push_back(
          {absl::StrCat("shapes[", i, "].", violation.field), violation.description});
    }
  }
  return violations.empty() ? absl::OkStatus() : InvalidFields(violations);
}

absl::Status FakeEngine::Warmup(std::string_view name, std::span<const VideoShape> shapes,
                                std::stop_token stop) {
  absl::Status status = Act(kWarmup, kWarmup, stop);
  if (!status.ok()) return status;
  if (stop.stop_requested()) return absl::CancelledError("stopped while warming up");
  absl::MutexLock lock(&mutex_);
  ++warmups_;
  const auto found = models_.find(name);
  if (found == models_.end()) return absl::NotFoundError("no such model");
  const VideoShape small{32, 32, 1};
  const std::span<const VideoShape> wanted = shapes.empty() ? std::span(&small, 1) : shapes;
  found->second.warm_shapes.insert(found->second.warm_shapes.end(), wanted.begin(), wanted.end());
  return absl::OkStatus();
}

absl::StatusOr<GenerationPlan> FakeEngine::Plan(const GenerationRequest& request) const {
  absl::Status status = Act(kPlan, kPlan, {});
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  ++plans_;
  const auto found = models_.find(request.model);
  if (found == models_.end()) {
    return absl::FailedPreconditionError(absl::StrCat("model '", request.model, "' is not loaded"));
  }
  const std::vector<FieldViolation> violations = Check(request, found->second);
  if (!violations.empty()) return InvalidFields(violations);
  GenerationPlan plan;
  plan.request = Resolve(request, found->second.defaults, request.seed ? 0 : next_seed_++);
  plan.shape = {*plan.request.width, *plan.request.height, *plan.request.num_frames};
  plan.image_to_video = request.image != nullptr;
  const auto add = [&](Stage stage) { plan.stages.push_back({stage, kStageFlops}); };
  add(StageKind::kTi2vPreprocess);
  add(StageKind::kT5Encoding);
  if (plan.image_to_video) add(StageKind::kVaeEncoding);
  plan.eight_bits = RoundsToEightBits(*plan.request.quality);
  plan.batched_guidance = batch_fits_ && plan.request.batched_guidance.value_or(batches_guidance_);
  const int steps = *plan.request.steps;
  for (int step = 0; step < steps; ++step) {
    plan.steps.push_back({1000.0 * (steps - step) / steps, ExpertRole::kOnly, 5.0});
    plan.steps.back().reuses_blocks = plan.request.quality == Quality::kFast && step % 2 == 1;
    add({StageKind::kStepLoading, step});
    add({StageKind::kStepInference, step});
    plan.stages.back().method = plan.steps.back().reuses_blocks ? StageMethod::kReuse
                                : plan.eight_bits               ? StageMethod::kEightBits
                                                                : StageMethod::kExact;
  }
  add(StageKind::kVaeDecoding);
  add(StageKind::kVideoEncoding);
  return plan;
}

absl::StatusOr<InputImage> FakeEngine::CheckImage(std::string_view image,
                                                  const Color& background) const {
  absl::Status status = Act(kCheckImage, kCheckImage, {});
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  checked_images_.emplace_back(image);
  if (image.starts_with(kDamagedImageMark)) {
    return InvalidFields({{"image", "is a broken PNG file: it is cut off"}});
  }
  return InputImage{.format = "PNG",
                    .width = 64,
                    .height = 32,
                    .exif_orientation = 6,
                    .blended_over = background,
                    .bits_per_sample = 16};
}

namespace {

std::string SavepointOf(const GenerationPlan& plan, int steps_done) {
  return absl::StrCat("seed ", *plan.request.seed, " step ", steps_done);
}

}  // namespace

absl::StatusOr<int> FakeEngine::StepsDone(const GenerationPlan& plan, GenerationObserver& observer,
                                          SavepointKeeper* savepoints) {
  if (savepoints == nullptr) return 0;
  const absl::StatusOr<std::optional<Savepoint>> loaded = savepoints->Load();
  if (!loaded.ok()) return loaded.status();
  const std::optional<Savepoint>& savepoint = *loaded;
  if (!savepoint.has_value()) return 0;
  if (savepoint->bytes != SavepointOf(plan, savepoint->steps_done)) {
    const absl::Status refused = savepoints->Refuse("the savepoint is " + savepoint->bytes);
    if (!refused.ok()) return refused;
    return 0;
  }
  observer.OnResumed(savepoint->steps_done);
  return savepoint->steps_done;
}

absl::Status FakeEngine::Generate(const GenerationPlan& plan, std::span<const OutputFile> outputs,
                                  Recorder& recorder, GenerationObserver& observer,
                                  std::stop_token stop, SavepointKeeper* savepoints) {
  {
    absl::MutexLock lock(&mutex_);
    generated_.push_back(plan.request);
  }
  const int steps = static_cast<int>(plan.steps.size());
  const absl::StatusOr<int> resumed = StepsDone(plan, observer, savepoints);
  if (!resumed.ok()) return resumed.status();
  const int steps_done = *resumed;
  std::vector<StageKind> before_steps = {StageKind::kTi2vPreprocess, StageKind::kT5Encoding};
  if (plan.image_to_video) before_steps.push_back(StageKind::kVaeEncoding);
  if (steps_done == steps) before_steps.clear();
  for (const StageKind stage : before_steps) {
    absl::Status status = RunStage(stage, recorder, stop);
    if (!status.ok()) return status;
  }
  for (int step = steps_done; step < steps; ++step) {
    const auto facts = std::make_shared<const StepFacts>(
        StepFacts{step, steps, plan.steps[step].timestep, plan.steps[step].expert});
    for (const StageKind kind : {StageKind::kStepLoading, StageKind::kStepInference}) {
      absl::Status status = RunStage({kind, step}, recorder, stop, facts);
      if (status.ok()) continue;
      if (stop.stop_requested() && savepoints != nullptr && step > 0 &&
          savepoints->WantsWhenStopped()) {
        savepoints->Keep({step, SavepointOf(plan, step)});
      }
      return status;
    }
    if (savepoints != nullptr && savepoints->IsDue(step + 1 == steps)) {
      savepoints->Keep({step + 1, SavepointOf(plan, step + 1)});
    }
    const int interval = plan.request.preview_interval;
    if (interval > 0 && (step + 1) % interval == 0) {
      const std::string first = absl::StrCat("JPEG of step ", step + 1);
      observer.OnPreview({step + 1, {first, first + ", middle", first + ", last"}});
    }
  }
  SendPart(plan, observer, "header", "avc1.64000a");
  SendPart(plan, observer, "first");
  for (const StageKind stage : {StageKind::kVaeDecoding, StageKind::kVideoEncoding}) {
    absl::Status status = RunStage(stage, recorder, stop);
    if (!status.ok()) return status;
    SendPart(plan, observer, NameOf(stage));
  }
  for (const OutputFile& output : outputs) {
    std::string text = absl::StrCat(std::string(NameOf(output.kind)), " seed ", *plan.request.seed);
    {
      absl::MutexLock lock(&mutex_);
      if (skipped_.contains(output.kind)) continue;
      if (const auto given = outputs_.find(output.kind); given != outputs_.end()) {
        text = given->second;
      }
      if (text.size() < output_bytes_) text.resize(output_bytes_, ' ');
    }
    std::ofstream file(output.path);
    file << text << std::flush;
    if (!file) return absl::ResourceExhaustedError("writing " + output.path + " failed");
  }
  std::vector<Omission> omissions;
  {
    absl::MutexLock lock(&mutex_);
    omissions = omissions_;
  }
  for (const Omission& omission : omissions) observer.OnOmission(omission);
  return absl::OkStatus();
}

void FakeEngine::SendPart(const GenerationPlan& plan, GenerationObserver& observer,
                          std::string_view text, const std::string& codec) const {
  if (!plan.request.progressive) return;
  VideoPart part{codec, absl::StrCat(std::string(text), " of seed ", *plan.request.seed, ";")};
  {
    absl::MutexLock lock(&mutex_);
    if (part.bytes.size() < part_bytes_) part.bytes.resize(part_bytes_, ' ');
  }
  observer.OnVideoPart(part);
}

absl::Status FakeEngine::RunStage(Stage stage, Recorder& recorder, const std::stop_token& stop,
                                  std::shared_ptr<const StepFacts> step) {
  if (stop.stop_requested()) return absl::CancelledError("stopped between stages");
  Span span = recorder.StartSpan(stage, std::move(step));
  return span.Finish(Act(NameOf(stage), NameOf(stage.kind), stop));
}

absl::Status FakeEngine::Act(std::string_view stage, std::string_view kind,
                             const std::stop_token& stop) const {
  absl::Duration duration;
  std::string what;
  absl::Status failure;
  {
    // Lock and unlock the mutex, because it looks at the conditions of its waiters only when it is
    // released.
    const std::stop_callback wake(stop, [this] { absl::MutexLock lock(&mutex_); });
    absl::MutexLock lock(&mutex_);
    if (held_.contains(stage)) {
      standing_.emplace(stage);
      const auto go = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return !held_.contains(stage) || (stop.stop_requested() && !hears_no_stop_);
      };
      mutex_.Await(absl::Condition(&go));
      standing_.erase(standing_.find(stage));
    }
    const auto found = durations_.find(kind);
    if (found != durations_.end()) duration = found->second;
    if (stage == losing_stage_) device_lost_ = true;
    const bool needs_device = stage != kPlan && stage != kCheckImage;
    if (device_lost_ && needs_device) return DeviceLostError("the fake device is lost");
    what = Take(throws_, stage);
    failure = Take(failures_, stage);
  }
  if (clock_ != nullptr) clock_->Advance(duration);
  if (!what.empty()) throw std::runtime_error(what);
  return failure;
}

std::vector<ModelDescription> FakeEngine::Models() const {
  absl::MutexLock lock(&mutex_);
  std::vector<ModelDescription> models;
  for (const auto& [name, model] : models_) models.push_back(model);
  return models;
}

void FakeEngine::NameDevice(std::string name) {
  absl::MutexLock lock(&mutex_);
  device_name_ = std::move(name);
}

DeviceDescription FakeEngine::Device() const {
  absl::MutexLock lock(&mutex_);
  DeviceDescription device{"cpu", device_name_, "fp32"};
  device.system.cpu_name = "Fake CPU";
  device.system.cpu_cores = 4;
  device.assumed_rate = assumed_rate_;
  return device;
}

}  // namespace wan::fakes
