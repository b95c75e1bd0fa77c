// Fills in values that the command line leaves out.
#pragma once

#include <cstdint>
#include <map>
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

// Returns the only model that is loaded or being loaded; if there is none, the only one that the
// server knows. Fails with INVALID_ARGUMENT, which names all models, if several models or none are
// possible. A pure function.
absl::StatusOr<std::string> OnlyModel(const std::vector<wan::v1::Model>& models);

// Returns the number of frames of the form N * `stride` + 1 for which the time from the first frame
// to the last is nearest to `seconds`. The OpenAI video API defines the length of a video in the
// same way. A pure function.
int32_t FramesOf(double seconds, int32_t fps, int32_t stride);

// Fills in the model and the frames of requests that lack them. Asks the server once for each
// model.
class RequestDefaults {
 public:
  // `session` must outlive this object.
  explicit RequestDefaults(Session& session) : session_(session) {}

  // If the request names no model, fills in the server's only one. If `seconds` is given, fills in
  // the frames, with the frame rate of the request or else the model's. If the server does not have
  // exactly one model, or does not tell a frame rate, tells the user so and returns the exit code.
  std::optional<ExitCode> FillIn(const std::optional<double>& seconds,
                                 wan::v1::GenerationRequest& request);

 private:
  std::optional<ExitCode> FillInModel(wan::v1::GenerationRequest& request);

  Session& session_;
  std::string only_model_;  // empty: not known yet
  std::map<std::string, wan::v1::Model> models_;
};

// Replaces kLastJob by the name of the newest job that the caller may see. If there is no job or
// the call fails, tells the user and returns the exit code.
std::optional<ExitCode> FillInLastJob(Session& session, std::string& job);

// Returns the default file of an artifact in the current folder, "a-red-cat-runs-on-4f1c9a52.mp4":
// the prompt's first five words of ASCII letters and digits, and the first eight characters of the
// job's ID, so that jobs do not share a name. `job` is "jobs/ID". A pure function.
OutputFile DefaultOutput(std::string_view prompt, std::string_view job, wan::v1::OutputKind kind);

// Whether the request has a seed; if the seed is absent or negative, the server draws one.
bool HasOwnSeed(const wan::v1::GenerationRequest& request);

// Prints the job's seed on stderr, so that the video can be made again; if the server has drawn the
// seed, asks the server for it. Prints nothing with --json, because the messages contain the seed.
void SaySeed(Session& session, const wan::v1::GenerationRequest& request, const std::string& job);

}  // namespace wan::client
