#include "server/quota/quotas.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace wan::server {

Quotas::Quotas() = default;

absl::StatusOr<std::unique_ptr<Quotas>> Quotas::Open(std::string path, Listener listener) {
  std::unique_ptr<Quotas> opened(new Quotas(std::move(path), std::move(listener)));
  absl::MutexLock lock(&opened->mutex_);
  opened->stamp_ = FileStamp::Of(opened->path_);
  absl::StatusOr<QuotaTable> read = ReadQuotaFile(opened->path_);
  if (!read.ok()) {
    return absl::Status(read.status().code(), absl::StrCat("quotas: ", read.status().message()));
  }
  opened->table_ = *std::move(read);
  return opened;
}

void Quotas::Refresh() {
  if (path_.empty()) return;
  absl::Status problem;
  {
    absl::MutexLock lock(&mutex_);
    if (FileStamp::Of(path_) == stamp_) return;
    problem = ReadAgain();
  }
  if (problem.ok()) return listener_.on_change();
  listener_.on_problem(problem);
}

absl::Status Quotas::Reload() {
  if (path_.empty()) return absl::OkStatus();
  {
    absl::MutexLock lock(&mutex_);
    if (absl::Status problem = ReadAgain(); !problem.ok()) return problem;
  }
  listener_.on_change();
  return absl::OkStatus();
}

absl::Status Quotas::ReadAgain() {
  // Take the stamp before reading, so that a change during the read is noticed next time.
  stamp_ = FileStamp::Of(path_);
  absl::StatusOr<QuotaTable> read = ReadQuotaFile(path_);
  if (!read.ok()) {
    return absl::Status(
        read.status().code(),
        absl::StrCat("quotas has changed and cannot be used, so the quotas stay as they were: ",
                     read.status().message()));
  }
  table_ = *std::move(read);
  return absl::OkStatus();
}

wan::v1::Quota Quotas::Of(std::string_view principal) const {
  absl::MutexLock lock(&mutex_);
  return table_.Of(principal);
}

}  // namespace wan::server
