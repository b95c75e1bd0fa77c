// Parses the quota file (docs/operate/security.md), which says how much each principal may use.
//
//   *: queued_jobs=20 calls_per_second=10
//   alice: queued_jobs=100 running_jobs=1 device_seconds=36000 stored_bytes=50GiB
//   CN=ops,O=Example: unlimited
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

struct QuotaTable {
  // The limits of the principals that have a line of their own.
  std::map<std::string, wan::v1::Quota, std::less<>> named;
  // The limits of all other principals, from the line '*'; without a line '*' the other principals
  // are unlimited.
  wan::v1::Quota others;

  const wan::v1::Quota& Of(std::string_view principal) const;
};

// Returns INVALID_ARGUMENT if lines are wrong; the message has "SOURCE:LINE: ..." for each of them.
absl::StatusOr<QuotaTable> ParseQuotaFile(std::string_view text, std::string_view source);

// Reads and parses the file; returns the errors of ReadGuardedFile and ParseQuotaFile.
absl::StatusOr<QuotaTable> ReadQuotaFile(const std::string& path);

}  // namespace wan::server
