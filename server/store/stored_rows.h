// What the rows of a job contain, whichever database has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/job_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// A row of the table jobs.
struct JobRow {
  int64_t number = 0;
  std::string name;
  int state = 0;
  std::string job;
  std::string request_digest;
  bool tied_to_caller = false;
  int64_t last_sequence = 0;  // 0: the job has no event
  bool has_first_event = false;
};

// Names of this many removed jobs are remembered, so that GetJob can say that the job was removed.
inline constexpr int64_t kRemovedNames = 100'000;

// How many minutes the use of removed jobs is kept: a day, and a second one in case the wall clock
// is set.
inline constexpr int64_t kMinutesKept = int64_t{2} * 24 * 60;

// Returns the minute since the epoch.
int64_t MinuteOf(absl::Time time);

// Returns the bytes of a job for its row.
std::string RowOf(wan::v1::Job job);

// Fills `stored` from a row. Returns what is wrong with the row; empty if it is sound. After a
// damage `stored` has no meaning.
std::string ReadRow(const JobRow& row, StoredJob& stored);

// Returns the value of a unique column, "OWNER<newline>REQUEST_ID"; owners' names have no newline.
std::string RequestKey(std::string_view owner, std::string_view request_id);

// Return the times by which a job is listed, in microseconds since the epoch; kNotEnded for the end
// of a job that has not ended.
int64_t CreateTimeKey(const wan::v1::Job& job);
int64_t EndTimeKey(const wan::v1::Job& job);

// Returns the bytes of the job's artifacts that have not been removed.
int64_t FileBytesOf(const wan::v1::Job& job);

// Returns the job as its webhook reports it; nullopt if the change does not end a job that has a
// webhook. Only the change that ends a job has a final event; later changes, for example of labels,
// have none.
std::optional<wan::v1::Job> WebhookOf(const JobChange& change);

// A stored event: its sequence and its bytes.
using EventRow = std::pair<int64_t, std::string>;

// Parses the events that follow `after`. Returns what is wrong with them as the message of
// DATA_LOSS.
absl::StatusOr<std::vector<wan::v1::Event>> ParseEvents(const std::vector<EventRow>& rows,
                                                        int64_t after);

}  // namespace wan::server
