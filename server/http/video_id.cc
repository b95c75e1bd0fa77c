#include "server/http/video_id.h"

#include "absl/strings/str_cat.h"
#include "server/conversion/names.h"

namespace wan::server {
namespace {

constexpr std::string_view kVideo = "video_";
constexpr std::string_view kJobs = "jobs/";

}  // namespace

std::string VideoIdOf(std::string_view job_name) {
  return absl::StrCat(std::string(kVideo), std::string(JobIdOf(job_name)));
}

std::optional<std::string> JobNameOf(std::string_view video_id) {
  if (!video_id.starts_with(kVideo)) return std::nullopt;
  std::string name = absl::StrCat(std::string(kJobs), std::string(video_id.substr(kVideo.size())));
  if (!CheckJobName(name, "video_id").ok()) return std::nullopt;
  return name;
}

}  // namespace wan::server
