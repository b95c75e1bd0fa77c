#include "server/store/readable_rows.h"

#include <google/protobuf/message.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "server/conversion/message_texts.h"

namespace wan::server {
namespace {

absl::Status Unreadable(const std::string& where, const std::string& job,
                        const google::protobuf::Message& message, std::string_view consequence) {
  const std::optional<std::string> field = FieldNotUtf8(message);
  return absl::InternalError(
      absl::StrCat(where, ": ", job, ": the ", message.GetDescriptor()->full_name(),
                   field.has_value() ? absl::StrCat(" has a text that is not UTF-8 in ", *field)
                                     : std::string(" cannot be serialised"),
                   " and could not be read back, so ", std::string(consequence)));
}

bool ChangeReadsBack(const JobChange& change) {
  return (!change.row.has_value() || ReadsBack(*change.row)) &&
         std::all_of(change.events.begin(), change.events.end(), ReadsBack) &&
         (!change.report.has_value() || ReadsBack(*change.report));
}

}  // namespace

absl::Status CheckReadsBack(const std::string& where, const StoredJob& stored,
                            std::span<const wan::v1::Event> events) {
  constexpr std::string_view kRefused = "the job was not accepted";
  if (!ReadsBack(stored.job)) return Unreadable(where, stored.job.name(), stored.job, kRefused);
  for (const wan::v1::Event& event : events) {
    if (!ReadsBack(event)) return Unreadable(where, stored.job.name(), event, kRefused);
  }
  return absl::OkStatus();
}

std::vector<JobChange> MendedChanges(const std::string& where, std::span<const JobChange> changes,
                                     const std::function<void(const absl::Status&)>& on_problem) {
  std::vector<JobChange> mended;
  if (std::all_of(changes.begin(), changes.end(), ChangeReadsBack)) return mended;
  mended.assign(changes.begin(), changes.end());
  const auto mend = [&](const std::string& job, google::protobuf::Message& message) {
    if (ReadsBack(message)) return;
    if (on_problem != nullptr) {
      on_problem(Unreadable(where, job, message, "it was stored with U+FFFD in its place"));
    }
    MendTexts(message);
  };
  for (JobChange& change : mended) {
    if (change.row.has_value()) mend(change.job, *change.row);
    for (wan::v1::Event& event : change.events) mend(change.job, event);
    if (change.report.has_value()) mend(change.job, *change.report);
  }
  return mended;
}

}  // namespace wan::server
