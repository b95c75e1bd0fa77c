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
    const FileStamp stamp = FileStamp::Of(path_);
    if (stamp == stamp_) return;
    stamp_ = stamp;
    absl::StatusOr<QuotaTable> read = ReadQuotaFile(path_);
    if (read.ok()) {
      table_ = *std::move(read);
    } else {
      problem = absl::Status(
          read.status().code(),
          absl::StrCat("quotas has changed and cannot be used, so the quotas stay as they were: ",
                       read.status().message()));
    }
  }
  if (problem.ok()) return listener_.on_change();
  listener_.on_problem(problem);
}

wan::v1::Quota Quotas::Of(std::string_view principal) const {
  absl::MutexLock lock(&mutex_);
  return table_.Of(principal);
}

}  // namespace wan::server
