// Where a run keeps what it has, so that it can go on after it was ended.
//
//   OUTPUT/run.json        the run's id, which makes its request ids, and its settings
//   OUTPUT/videos/KEY.mkv  what the server made
//   OUTPUT/seen/KEY.json   what the detector saw in it, and the job's times
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "demo/evaluate/detector.h"

namespace wan::demo {

// One video that was made and looked at.
struct VideoResult {
  std::string job;  // "jobs/ID"
  nlohmann::ordered_json request =
      nlohmann::ordered_json::object();  // as the server resolved it (ResolvedJson)
  Sight sight;
  // Of the first frame against the given image, dB; image to video only.
  std::optional<double> first_frame_psnr;
  // As the server's clock has them, in seconds since 1970.
  double create_time = 0;
  double start_time = 0;
  double end_time = 0;

  friend bool operator==(const VideoResult&, const VideoResult&) = default;
};

class RunFolder {
 public:
  // Makes the folder, or opens that of an earlier run. INVALID_ARGUMENT if it has other
  // `settings`, INTERNAL if it cannot be written.
  static absl::StatusOr<RunFolder> Open(const std::filesystem::path& path,
                                        const nlohmann::ordered_json& settings);

  // Never the same for two runs, always the same for one.
  std::string RequestId(const std::string& key) const;

  std::filesystem::path VideoPath(const std::string& key) const;

  // Nothing if there is no (whole) result.
  std::optional<VideoResult> Load(const std::string& key) const;
  absl::Status Save(const std::string& key, const VideoResult& result) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  RunFolder(std::filesystem::path path, std::string id)
      : path_(std::move(path)), id_(std::move(id)) {}

  std::filesystem::path path_;
  std::string id_;
};

// Replaces the file as a whole, or leaves it. INTERNAL, naming it, if that cannot be done.
absl::Status WriteWhole(const std::filesystem::path& path, const std::string& text);

}  // namespace wan::demo
