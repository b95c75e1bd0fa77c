// What a command takes where the command line leaves it open.
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

// Returns the name of the one model that can be meant: the only one that is loaded or being loaded,
// else the only one that the server knows. INVALID_ARGUMENT with all names if there are several, or
// none. Pure.
absl::StatusOr<std::string> OnlyModel(const std::vector<wan::v1::Model>& models);

// Fills in the request's model if it has none, for which it asks the server. If there is no one
// model to take, tells the user why and returns the exit code.
std::optional<ExitCode> FillInModel(Session& session, wan::v1::GenerationRequest& request);

// Returns the file that an artifact is written to if none is named, in the current folder:
// "a-red-cat-runs-on-4f1c9a52.mp4", the prompt's first five words of ASCII letters and digits and
// the first eight characters of the job's ID. So no two jobs share a name. `job` is "jobs/ID".
// Pure.
OutputFile DefaultOutput(std::string_view prompt, std::string_view job, wan::v1::OutputKind kind);

// Whether the request chooses its seed. Without one, and with a negative one, the server draws it.
bool HasOwnSeed(const wan::v1::GenerationRequest& request);

// Tells the user on stderr which seed the job of `request` has, so that the video can be made
// again. Asks the server where the server drew it. Prints nothing with --json, whose messages have
// it.
void SaySeed(Session& session, const wan::v1::GenerationRequest& request, const std::string& job);

}  // namespace wan::client
