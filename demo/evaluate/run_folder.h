// Stores what a run has made, so that the run can continue after it was ended.
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

// A video that was made and looked at.
struct VideoResult {
  std::string job;  // the name of the job, "jobs/ID"
  nlohmann::ordered_json request =
      nlohmann::ordered_json::object();  // the request as the server resolved it (ResolvedJson)
  Sight sight;
  // How near the first frame is to the given image, in dB; set for image to video only.
  std::optional<double> first_frame_psnr;
  // Times as the server's clock has them, in seconds since 1970.
  double create_time = 0;
  double start_time = 0;
  double end_time = 0;

  friend bool operator==(const VideoResult&, const VideoResult&) = default;
};

class RunFolder {
 public:
  // Makes the folder, or opens that of an earlier run. Fails with INVALID_ARGUMENT if the folder
  // has other `settings`, with INTERNAL if it cannot be written.
  static absl::StatusOr<RunFolder> Open(const std::filesystem::path& path,
                                        const nlohmann::ordered_json& settings);

  // Returns a request_id that is always the same for one run and key, and different for every other
  // run.
  std::string RequestId(const std::string& key) const;

  std::filesystem::path VideoPath(const std::string& key) const { return VideoIn(path_, key); }
  // Returns where the folder of a run has this video.
  static std::filesystem::path VideoIn(const std::filesystem::path& folder, const std::string& key);

  // Returns nothing if there is no result, or only a part of one.
  std::optional<VideoResult> Load(const std::string& key) const;
  absl::Status Save(const std::string& key, const VideoResult& result) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  RunFolder(std::filesystem::path path, std::string id)
      : path_(std::move(path)), id_(std::move(id)) {}

  std::filesystem::path path_;
  std::string id_;
};

// Replaces the file as a whole; after an error the old file is still there. Fails with INTERNAL,
// and a message that names the file, if it cannot be written.
absl::Status WriteWhole(const std::filesystem::path& path, const std::string& text);

}  // namespace wan::demo
