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
  // The limits of principals that have a line of their own.
  std::map<std::string, wan::v1::Quota, std::less<>> named;
  // The limits of all others, from the line '*'; unlimited without such a line.
  wan::v1::Quota others;

  const wan::v1::Quota& Of(std::string_view principal) const;
};

// INVALID_ARGUMENT with one line "SOURCE:LINE: ..." in the message for each mistake.
absl::StatusOr<QuotaTable> ParseQuotaFile(std::string_view text, std::string_view source);

// Returns the errors of ReadGuardedFile and ParseQuotaFile.
absl::StatusOr<QuotaTable> ReadQuotaFile(const std::string& path);

}  // namespace wan::server
