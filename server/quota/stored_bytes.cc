#include "server/quota/stored_bytes.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "server/conversion/errors.h"

namespace wan::server {

absl::StatusOr<uint64_t> StoredBytesOf(JobStore& store, const std::string& owner) {
  const absl::StatusOr<std::map<wan::v1::JobState, EndedTotals>> totals =
      store.TotalsOfEnded(owner);
  if (!totals.ok()) return totals.status();
  uint64_t bytes = 0;
  for (const auto& [state, of_state] : *totals) bytes += static_cast<uint64_t>(of_state.file_bytes);
  return bytes;
}

absl::Status CheckStoredBytes(JobStore& store, const wan::v1::Quota& quota,
                              const std::string& owner) {
  if (!quota.has_stored_bytes()) return absl::OkStatus();
  const absl::StatusOr<uint64_t> stored = StoredBytesOf(store, owner);
  if (!stored.ok()) return stored.status();
  if (*stored < quota.stored_bytes()) return absl::OkStatus();
  QuotaExcess excess{owner, "stored_bytes", absl::StrCat(*stored),
                     absl::StrCat(quota.stored_bytes())};
  excess.what = absl::StrCat("stores ", *stored, " bytes of artifacts");
  excess.remedy = quota.stored_bytes() == 0
                      ? "no jobs are accepted until an administrator changes it"
                      : "delete jobs or artifacts that are no longer needed";
  return QuotaExceededError(excess);
}

}  // namespace wan::server
