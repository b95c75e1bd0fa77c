#include "client/wanctl/defaults.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/model_client.h"
#include "client/wanctl/text.h"

namespace wan::client {
namespace {

constexpr int kNameWords = 5;
constexpr size_t kLongestName = 60;
constexpr size_t kIdLength = 8;

std::string ShortName(const wan::v1::Model& model) {
  constexpr std::string_view kPrefix = "models/";
  const std::string& name = model.name();
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

// Returns the first words of the prompt in lower case, joined by '-'; empty if the prompt has no
// ASCII letters or digits.
std::string NameOf(std::string_view prompt) {
  std::string name;
  int words = 0;
  bool between = true;
  for (const char c : prompt) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      // An apostrophe does not end a word.
      if (c != '\'') between = true;
      continue;
    }
    if (between) {
      if (words == kNameWords) break;
      if (words++ > 0) name += '-';
      between = false;
    }
    name += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  return name.substr(0, kLongestName);
}

}  // namespace

absl::StatusOr<std::string> OnlyModel(const std::vector<wan::v1::Model>& models) {
  std::vector<std::string> loaded, known;
  for (const wan::v1::Model& model : models) {
    known.push_back(ShortName(model));
    if (model.state() == wan::v1::MODEL_STATE_READY ||
        model.state() == wan::v1::MODEL_STATE_LOADING) {
      loaded.push_back(ShortName(model));
    }
  }
  if (loaded.size() == 1) return loaded.front();
  if (loaded.empty() && known.size() == 1) return known.front();
  if (known.empty()) {
    return absl::InvalidArgumentError(
        "--model is missing and the server has no model; load one with 'wanctl models load'");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--model is missing; must name one of ",
                   Printable(absl::StrJoin(loaded.empty() ? known : loaded, ", "))));
}

int32_t FramesOf(double seconds, int32_t fps, int32_t stride) {
  return stride * static_cast<int32_t>(std::lround(seconds * fps / stride)) + 1;
}

std::optional<ExitCode> RequestDefaults::FillInModel(wan::v1::GenerationRequest& request) {
  if (!request.model().empty()) return std::nullopt;
  if (only_model_.empty()) {
    const absl::StatusOr<wan::v1::ListModelsResponse> response =
        ModelClient(session_.connection()).ListModels(session_.stop());
    if (!response.ok()) return session_.Fail(response.status());
    absl::StatusOr<std::string> model =
        OnlyModel({response->models().begin(), response->models().end()});
    if (!model.ok()) return session_.RefuseUsage(model.status());
    only_model_ = *std::move(model);
  }
  request.set_model(only_model_);
  return std::nullopt;
}

std::optional<ExitCode> RequestDefaults::FillIn(const std::optional<double>& seconds,
                                                wan::v1::GenerationRequest& request) {
  if (const auto refused = FillInModel(request)) return refused;
  if (!seconds.has_value()) return std::nullopt;
  auto known = models_.find(request.model());
  if (known == models_.end()) {
    absl::StatusOr<wan::v1::Model> asked =
        ModelClient(session_.connection()).GetModel(request.model(), session_.stop());
    if (!asked.ok()) return session_.Fail(asked.status());
    known = models_.emplace(request.model(), *std::move(asked)).first;
  }
  const wan::v1::Model& model = known->second;
  const int32_t fps = request.has_fps() ? request.fps() : model.defaults().fps();
  if (fps <= 0 || model.temporal_stride() <= 0) {
    return session_.RefuseUsage(absl::InvalidArgumentError(
        absl::StrCat("--seconds needs to know the frame rate, which ", Printable(request.model()),
                     " does not tell before it is loaded; give --frames instead")));
  }
  request.set_num_frames(FramesOf(*seconds, fps, model.temporal_stride()));
  return std::nullopt;
}

std::optional<ExitCode> FillInLastJob(Session& session, std::string& job) {
  if (job != kLastJob) return std::nullopt;
  wan::v1::ListJobsRequest newest;
  newest.set_page_size(1);
  const absl::StatusOr<wan::v1::ListJobsResponse> page =
      session.Videos().ListJobs(newest, session.stop());
  if (!page.ok()) return session.Fail(page.status());
  if (page->jobs().empty()) {
    session.Say("there is no last job; 'wanctl submit' makes one");
    return kExitRejected;
  }
  job = page->jobs(0).name();
  return std::nullopt;
}

OutputFile DefaultOutput(std::string_view prompt, std::string_view job, wan::v1::OutputKind kind) {
  const std::string name = NameOf(prompt);
  const std::string id(job.substr(job.rfind('/') + 1).substr(0, kIdLength));
  return {kind, absl::StrCat(name, name.empty() ? "" : "-", id, ".",
                             std::string(ArtifactKindName(kind)))};
}

bool HasOwnSeed(const wan::v1::GenerationRequest& request) {
  return request.has_seed() && request.seed() >= 0;
}

void SaySeed(Session& session, const wan::v1::GenerationRequest& request, const std::string& job) {
  if (session.json()) return;
  const std::string name = Printable(job);
  if (HasOwnSeed(request)) {
    session.Say(absl::StrCat(name, " has seed ", request.seed()));
    return;
  }
  const absl::StatusOr<wan::v1::Job> resolved = session.Videos().GetJob(job, session.stop());
  if (resolved.ok() && resolved->request().has_seed()) {
    session.Say(absl::StrCat(name, " has seed ", resolved->request().seed()));
  } else {
    session.Say(
        absl::StrCat(name, " has a seed that could not be read; 'wanctl get ", name, "' shows it"));
  }
}

}  // namespace wan::client
