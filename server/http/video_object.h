// Jobs and models as the OpenAI API shows them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// "video_ID" of "jobs/ID".
std::string VideoIdOf(std::string_view job_name);
// Returns "jobs/ID" for "video_ID"; nullopt for other texts.
std::optional<std::string> JobNameOf(std::string_view video_id);

// Returns the file of a job that is its video: the first that plays everywhere, else the first of
// all. Null if it has none.
const wan::v1::Artifact* VideoFileOf(const wan::v1::Job& job);

nlohmann::json VideoOf(const wan::v1::Job& job);
nlohmann::json ModelObject(std::string_view name, absl::Time created);

}  // namespace wan::server
