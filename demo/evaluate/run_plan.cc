#include "demo/evaluate/run_plan.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace wan::demo {
namespace {

absl::StatusOr<std::string> ReadImage(const Scene& scene, const std::string& folder) {
  if (scene.image.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("scene '", scene.id, "' names no image, which image to video starts from"));
  }
  const std::filesystem::path path = std::filesystem::path(folder) / scene.image;
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file || bytes.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "--images: cannot read ", path.string(), " of scene '", scene.id,
        "'; must be a folder with the scenes' first frames, for example what first_frames.tar.xz "
        "beside the scenes unpacks to"));
  }
  return bytes;
}

wan::v1::GenerationRequest RequestFor(const Scene& scene, const RunOptions& options,
                                      int64_t number) {
  wan::v1::GenerationRequest request;
  request.set_model(options.model);
  request.set_prompt(scene.caption);
  if (options.steps) request.set_steps(*options.steps);
  if (options.guidance) request.add_guidance_scale(*options.guidance);
  // The settings of the run override those of the scene.
  if (!options.negative_prompt.empty()) {
    request.set_negative_prompt(options.negative_prompt);
  } else if (!options.without_negative_prompts && !scene.negative_prompt.empty()) {
    request.set_negative_prompt(scene.negative_prompt);
  }
  if (const int width = options.width.value_or(scene.width)) request.set_width(width);
  if (const int height = options.height.value_or(scene.height)) request.set_height(height);
  if (const int frames = options.frames.value_or(scene.frames)) request.set_num_frames(frames);
  if (options.shift) request.set_shift(*options.shift);
  request.set_solver(options.solver);
  request.set_quality(options.quality);
  request.set_priority(options.priority);
  request.set_seed(options.seed + number);
  request.add_outputs(wan::v1::OUTPUT_KIND_LOSSLESS_MKV);
  return request;
}

}  // namespace

const char* NameOf(VideoMode mode) { return mode == VideoMode::kTextToVideo ? "text" : "image"; }

std::string VideoKey(std::string_view mode, std::string_view scene) {
  return absl::StrCat(std::string(mode), "-", std::string(scene));
}

absl::StatusOr<std::vector<PlannedVideo>> PlanVideos(const std::vector<Scene>& scenes,
                                                     const RunOptions& options) {
  std::vector<PlannedVideo> videos;
  for (const VideoMode mode : options.modes) {
    for (size_t i = 0; i < scenes.size(); ++i) {
      const Scene& scene = scenes[i];
      PlannedVideo& video = videos.emplace_back();
      video.key = VideoKey(NameOf(mode), scene.id);
      video.mode = mode;
      video.scene = &scene;
      video.request = RequestFor(scene, options, static_cast<int64_t>(i));
      if (mode == VideoMode::kTextToVideo) continue;
      absl::StatusOr<std::string> image = ReadImage(scene, options.images);
      if (!image.ok()) return image.status();
      video.request.set_image(*std::move(image));
    }
  }
  return videos;
}

nlohmann::ordered_json ResolvedJson(const wan::v1::GenerationRequest& request) {
  nlohmann::ordered_json guidance = nlohmann::ordered_json::array();
  for (const double scale : request.guidance_scale()) guidance.push_back(scale);
  return {{"width", request.width()},
          {"height", request.height()},
          {"frames", request.num_frames()},
          {"steps", request.steps()},
          {"guidance", std::move(guidance)},
          {"shift", request.shift()},
          {"solver", wan::v1::Solver_Name(request.solver())},
          {"quality", wan::v1::Quality_Name(request.quality())},
          {"seed", request.seed()}};
}

}  // namespace wan::demo
