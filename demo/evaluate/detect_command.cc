#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/compare/frame_metrics.h"
#include "demo/evaluate/clip_file.h"
#include "demo/evaluate/commands.h"
#include "demo/evaluate/detector.h"
#include "demo/evaluate/run_folder.h"
#include "demo/evaluate/scenes.h"
#include "demo/evaluate/scores.h"

namespace wan::demo {
namespace {

// What the detector sees in one clip.
struct Look {
  absl::StatusOr<Sight> sight;
  std::optional<double> psnr;  // compared with the clip of the reference
};

// Looks at all clips, on all cores.
std::vector<Look> LookAtAll(const ClipFile& clips, const std::optional<ClipFile>& reference) {
  std::vector<Look> looks(clips.size());
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> threads(
      std::min<size_t>(looks.size(), std::max(1u, std::thread::hardware_concurrency())));
  for (std::jthread& thread : threads) {
    thread = std::jthread([&] {
      for (size_t i; (i = next++) < looks.size();) {
        looks[i].sight = Detect(clips[i]);
        if (reference) looks[i].psnr = client::Psnr(clips[i].rgb, (*reference)[i].rgb);
      }
    });
  }
  threads.clear();
  return looks;
}

struct Judged {
  std::string text;
  nlohmann::ordered_json report;
};

absl::StatusOr<Judged> Judge(const DetectOptions& options) {
  const absl::StatusOr<SceneFile> scene_file = ReadScenes(options.scenes);
  if (!scene_file.ok()) return scene_file.status();
  const std::vector<Scene>& scenes = scene_file->scenes;
  const absl::StatusOr<ClipFile> clips = ClipFile::Open(options.clips);
  if (!clips.ok()) return clips.status();
  if (clips->size() != scenes.size()) {
    return absl::InvalidArgumentError(absl::StrCat(options.clips, " has ", clips->size(),
                                                   " clips, but ", options.scenes, " has ",
                                                   scenes.size(), " scenes"));
  }
  std::optional<ClipFile> reference;
  if (!options.reference.empty()) {
    absl::StatusOr<ClipFile> opened = ClipFile::Open(options.reference);
    if (!opened.ok()) return opened.status();
    if (opened->ShapeText() != clips->ShapeText()) {
      return absl::InvalidArgumentError(absl::StrCat("the clips of ", options.reference, " are ",
                                                     opened->ShapeText(), " and those of ",
                                                     options.clips, " ", clips->ShapeText()));
    }
    reference = *std::move(opened);
  }

  const auto start = std::chrono::steady_clock::now();
  const std::vector<Look> looks = LookAtAll(*clips, reference);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  Tallies tallies;
  GroupTallies groups;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < scenes.size(); ++i) {
    if (!looks[i].sight.ok()) return looks[i].sight.status();
    const Scene& scene = scenes[i];
    const SceneScore score = ScoreScene(scene, *looks[i].sight);
    AddTo(tallies, scene, score);
    AddTo(groups, scene, score);
    nlohmann::ordered_json entry = {{"id", scene.id}};
    entry.update(ToJson(score));
    if (looks[i].psnr) {
      TallyOf(tallies, scene).levels["psnr"].Add(*looks[i].psnr);
      entry["psnr"] = *looks[i].psnr;
    }
    list.push_back(std::move(entry));
  }
  Judged judged{absl::StrCat(ToText(tallies), absl::StrFormat("%d clips in %.2f s\n", scenes.size(),
                                                              seconds.count())),
                ToJson(tallies)};
  if (!groups.empty()) judged.report["groups"] = ToJson(groups);
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
