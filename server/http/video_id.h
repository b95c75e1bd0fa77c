// The names of videos in the OpenAI API and those of their jobs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wan::server {

// Returns "video_ID" for the job's name "jobs/ID".
std::string VideoIdOf(std::string_view job_name);
// Returns "jobs/ID" for "video_ID"; nullopt for other texts.
std::optional<std::string> JobNameOf(std::string_view video_id);

}  // namespace wan::server
