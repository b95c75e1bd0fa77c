// Which videos a run asks the server for.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "demo/evaluate/scenes.h"
#include "wan/v1/generation.pb.h"

namespace wan::demo {

enum class VideoMode { kTextToVideo, kImageToVideo };

// "text" and "image".
const char* NameOf(VideoMode mode);

struct RunOptions {
  std::string server;
  std::string scenes;  // file
  std::string output;  // folder
  std::string images;  // folder of the scenes' first frames; empty without image to video
  std::vector<VideoMode> modes;
  // Of every request; what is not set is left to the model.
  std::string model;
  std::string negative_prompt;
  bool without_negative_prompts = false;  // leaves out those of the scenes
  std::optional<int> steps;
  std::optional<double> guidance;
  std::optional<int> width;
  std::optional<int> height;
  std::optional<int> frames;
  std::optional<double> shift;
  wan::v1::Solver solver = wan::v1::SOLVER_UNSPECIFIED;
  int priority = 0;
  int64_t seed = 1;  // of the first scene; each has the next, the same in both modes
  // What the server was told apart from the requests, for the report.
  std::string note;
  int concurrency = 0;  // jobs with the server at a time; 0: as many as its queue takes
};

struct PlannedVideo {
  std::string key;  // unique in the run: "text-SCENE"
  VideoMode mode = VideoMode::kTextToVideo;
  const Scene* scene = nullptr;
  wan::v1::GenerationRequest request;  // with the image; without request_id
};

// In the order of the modes and of the scenes, which must outlive the plan. Errors name scene and
// file: INVALID_ARGUMENT for a scene without an image where one is needed, NOT_FOUND for an image
// that cannot be read.
absl::StatusOr<std::vector<PlannedVideo>> PlanVideos(const std::vector<Scene>& scenes,
                                                     const RunOptions& options);

// What a server made of a request: {"width", "height", "frames", "steps", "guidance": [...],
// "shift", "solver", "seed"}.
nlohmann::ordered_json ResolvedJson(const wan::v1::GenerationRequest& request);

}  // namespace wan::demo
