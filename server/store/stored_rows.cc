#include "server/store/stored_rows.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/conversion/convert.h"
#include "server/store/filter_match.h"

namespace wan::server {
namespace {

bool Ends(const wan::v1::Event& event) {
  return event.has_completed() || event.has_failed() || event.has_cancelled();
}

}  // namespace

int64_t MinuteOf(absl::Time time) { return absl::ToUnixSeconds(time) / 60; }

std::string RowOf(wan::v1::Job job) {
  job.clear_queue_position();
  job.clear_eta_seconds();
  job.clear_eta_p90_seconds();
  job.clear_progress();
  job.clear_last_sequence();
  job.clear_expire_time();
  return job.SerializeAsString();
}

std::string ReadRow(const JobRow& row, StoredJob& stored) {
  if (!stored.job.ParseFromString(row.job)) return "its bytes are not a wan.v1.Job";
  if (stored.job.name() != row.name) {
    return absl::StrCat("its bytes belong to the job '", absl::CHexEscape(stored.job.name()), "'");
  }
  if (!wan::v1::JobState_IsValid(row.state) || row.state == wan::v1::JOB_STATE_UNSPECIFIED) {
    return absl::StrCat("its state is ", row.state, ", which is not a state of a job");
  }
  if (stored.job.state() != row.state) {
    return absl::StrCat("its state is ", row.state, " in the table, but ",
                        static_cast<int>(stored.job.state()), " in its bytes");
  }
  if (!row.has_first_event) return "its first event is missing";
  stored.request_digest = row.request_digest;
  stored.tied_to_caller = row.tied_to_caller;
  stored.job.set_last_sequence(row.last_sequence);
  return "";
}

std::string RequestKey(std::string_view owner, std::string_view request_id) {
  std::string key(owner);
  if (!owner.empty()) key += '\n';
  return key.append(request_id);
}

int64_t CreateTimeKey(const wan::v1::Job& job) {
  return absl::ToUnixMicros(ToTime(job.create_time()));
}

int64_t EndTimeKey(const wan::v1::Job& job) {
  return job.has_end_time() ? absl::ToUnixMicros(ToTime(job.end_time())) : kNotEnded;
}

int64_t FileBytesOf(const wan::v1::Job& job) {
  int64_t bytes = 0;
  for (const wan::v1::Artifact& artifact : job.artifacts()) {
    if (!artifact.has_delete_time()) bytes += static_cast<int64_t>(artifact.size_bytes());
  }
  return bytes;
}

std::optional<wan::v1::Job> WebhookOf(const JobChange& change) {
  if (!change.row.has_value() || change.row->request().webhook_url().empty() ||
      std::none_of(change.events.begin(), change.events.end(), Ends)) {
    return std::nullopt;
  }
  wan::v1::Job job = *change.row;
  wan::v1::GenerationRequest told;
  told.set_model(job.request().model());
  told.set_webhook_url(job.request().webhook_url());
  *told.mutable_labels() = job.request().labels();
  *job.mutable_request() = std::move(told);
  return job;
}

absl::StatusOr<std::vector<wan::v1::Event>> ParseEvents(const std::vector<EventRow>& rows,
                                                        int64_t after) {
  std::vector<wan::v1::Event> events;
  for (const auto& [sequence, bytes] : rows) {
    wan::v1::Event event;
    if (sequence != after + 1) {
      return absl::DataLossError(absl::StrCat("its event ", after + 1, " is missing"));
    }
    if (!event.ParseFromString(bytes) || event.sequence() != sequence) {
      return absl::DataLossError(absl::StrCat("its event ", sequence, " cannot be read"));
    }
    after = sequence;
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace wan::server
