#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "demo/evaluate/commands.h"
#include "demo/evaluate/detector.h"
#include "demo/evaluate/run_folder.h"
#include "demo/evaluate/scenes.h"
#include "demo/evaluate/scores.h"
#include "engine/checkpoint/safetensors.h"

namespace wan::demo {
namespace {

constexpr char kTensor[] = "video";

absl::StatusOr<StoredTensor> FindClips(const TensorFile& file, size_t scenes) {
  const auto found =
      std::find_if(file.tensors.begin(), file.tensors.end(),
                   [](const StoredTensor& tensor) { return tensor.name == kTensor; });
  if (found == file.tensors.end()) {
    return absl::InvalidArgumentError(absl::StrCat(file.path, " has no tensor '", kTensor, "'"));
  }
  if (found->dtype != DType::kUInt8 || found->shape.size() != 5 || found->shape[4] != 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.path, ": '", kTensor, "' is to be U8 [clips, frames, height, width, 3], not ",
        std::string(DTypeName(found->dtype)), " [", absl::StrJoin(found->shape, ", "), "]"));
  }
  if (found->shape[0] != static_cast<int64_t>(scenes)) {
    return absl::InvalidArgumentError(absl::StrCat(file.path, " has ", found->shape[0],
                                                   " clips, but there are ", scenes, " scenes"));
  }
  return *found;
}

// On all cores.
std::vector<absl::StatusOr<Sight>> DetectAll(const StoredTensor& clips) {
  const size_t count = clips.shape[0];
  const size_t clip_bytes = clips.bytes.size() / count;
  const auto* const pixels = reinterpret_cast<const uint8_t*>(clips.bytes.data());
  std::vector<absl::StatusOr<Sight>> sights(count);
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> threads(
      std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency())));
  for (std::jthread& thread : threads) {
    thread = std::jthread([&] {
      for (size_t i; (i = next++) < count;) {
        sights[i] = Detect(ClipView{.rgb = {pixels + i * clip_bytes, clip_bytes},
                                    .frames = static_cast<int>(clips.shape[1]),
                                    .height = static_cast<int>(clips.shape[2]),
                                    .width = static_cast<int>(clips.shape[3])});
      }
    });
  }
  threads.clear();
  return sights;
}

struct Judged {
  std::string text;
  nlohmann::ordered_json report;
};

absl::StatusOr<Judged> Judge(const DetectOptions& options) {
  const absl::StatusOr<SceneFile> scene_file = ReadScenes(options.scenes);
  if (!scene_file.ok()) return scene_file.status();
  const std::vector<Scene>& scenes = scene_file->scenes;
  const absl::StatusOr<TensorFile> file = ReadSafetensors(options.clips);
  if (!file.ok()) return file.status();
  const absl::StatusOr<StoredTensor> clips = FindClips(*file, scenes.size());
  if (!clips.ok()) return clips.status();

  const auto start = std::chrono::steady_clock::now();
  const std::vector<absl::StatusOr<Sight>> sights = DetectAll(*clips);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  Tallies tallies;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < scenes.size(); ++i) {
    if (!sights[i].ok()) return sights[i].status();
    const Scene& scene = scenes[i];
    const SceneScore score = ScoreScene(scene, *sights[i]);
    AddTo(tallies, scene, score);
    nlohmann::ordered_json entry = {{"id", scene.id}};
    entry.update(ToJson(score));
    list.push_back(std::move(entry));
  }
  Judged judged{absl::StrCat(ToText(tallies), absl::StrFormat("%d clips in %.2f s\n", scenes.size(),
                                                              seconds.count())),
                ToJson(tallies)};
  judged.report["settings"] = {{"scenes_sha256", scene_file->sha256}};
  judged.report["clips"] = std::move(list);
  return judged;
}

}  // namespace

int Detect(const DetectOptions& options, const Environment& environment) {
  const absl::StatusOr<Judged> judged = Judge(options);
  if (!judged.ok()) {
    Say(environment, judged.status().message());
    return client::kExitUsage;
  }
  environment.out << judged->text;
  if (options.json.empty()) return client::kExitDone;
  const absl::Status status = WriteWhole(options.json, judged->report.dump(1) + "\n");
  if (status.ok()) return client::kExitDone;
  Say(environment, status.message());
  return client::kExitFailed;
}

}  // namespace wan::demo
