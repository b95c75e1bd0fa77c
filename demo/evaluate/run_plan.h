// Decides which videos a run asks the server for.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "demo/evaluate/scenes.h"
#include "wan/v1/generation.pb.h"

namespace wan::demo {

enum class VideoMode { kTextToVideo, kImageToVideo };

// Returns "text" or "image".
const char* NameOf(VideoMode mode);

// Returns the key of the video of a scene, for example "text-SCENE". `mode` is one of the names.
std::string VideoKey(std::string_view mode, std::string_view scene);

struct RunOptions {
  std::string server;
  std::string scenes;  // the file of scenes
  std::string output;  // the folder for the results
  std::string images;  // the folder with the first frames of the scenes; empty: no image to video
  std::vector<VideoMode> modes;
  // The settings for every request; what is not set is left to the model.
  std::string model;
  std::string negative_prompt;
  bool without_negative_prompts = false;  // whether to leave out the negative prompts of the scenes
  std::optional<int> steps;
  std::optional<double> guidance;
  std::optional<int> width;
  std::optional<int> height;
  std::optional<int> frames;
  std::optional<double> shift;
  wan::v1::Solver solver = wan::v1::SOLVER_UNSPECIFIED;
  wan::v1::Quality quality = wan::v1::QUALITY_UNSPECIFIED;
  int priority = 0;
  int64_t seed = 1;  // seed of the first scene; each further scene has the next one, in both modes
  // What else the server was told, apart from the requests; it is copied into the report.
  std::string note;
  // Most jobs that are with the server at a time; 0: as many as its queue takes.
  int concurrency = 0;
};

struct PlannedVideo {
  std::string key;  // VideoKey; unique in the run
  VideoMode mode = VideoMode::kTextToVideo;
  const Scene* scene = nullptr;
  wan::v1::GenerationRequest request;  // the request, with its image and without a request_id
};

// Returns the videos in the order of the modes and then of the scenes; the scenes must outlive the
// plan. Error messages name scene and file. Fails with INVALID_ARGUMENT if a scene lacks an image
// that it needs, with NOT_FOUND if an image cannot be read.
absl::StatusOr<std::vector<PlannedVideo>> PlanVideos(const std::vector<Scene>& scenes,
                                                     const RunOptions& options);

// Returns the request as a server has resolved it: {"width", "height", "frames", "steps",
// "guidance": [...], "shift", "solver", "quality", "seed"}.
nlohmann::ordered_json ResolvedJson(const wan::v1::GenerationRequest& request);

}  // namespace wan::demo
