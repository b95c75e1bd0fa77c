// Fills in what the command line leaves out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/wanctl/exit_code.h"
#include "client/wanctl/session.h"
#include "client/wanctl/values.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"

namespace wan::client {

// Returns the only model that is loaded or being loaded, else the only one that the server knows.
// INVALID_ARGUMENT, with all names, if there are several or none. Pure.
absl::StatusOr<std::string> OnlyModel(const std::vector<wan::v1::Model>& models);

// If the request has no model, fills in the server's only one. If that is not possible, tells the
// user why and returns the exit code.
std::optional<ExitCode> FillInModel(Session& session, wan::v1::GenerationRequest& request);

// Returns the default file of an artifact in the current folder, "a-red-cat-runs-on-4f1c9a52.mp4":
// the prompt's first five words of ASCII letters and digits, and the first eight characters of the
// job's ID, so that jobs do not share a name. `job` is "jobs/ID". Pure.
OutputFile DefaultOutput(std::string_view prompt, std::string_view job, wan::v1::OutputKind kind);

// Whether the request has a seed; if it is absent or negative, the server draws one.
bool HasOwnSeed(const wan::v1::GenerationRequest& request);

// Prints the job's seed on stderr, so that the video can be made again; asks the server if it drew
// the seed. Prints nothing with --json, because the messages contain the seed.
void SaySeed(Session& session, const wan::v1::GenerationRequest& request, const std::string& job);

}  // namespace wan::client
