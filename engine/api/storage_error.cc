#include "engine/api/storage_error.h"

#include <cerrno>
#include <utility>

#include "engine/api/errors.h"

namespace wan {

absl::Status WithStorageReason(absl::Status status, int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EIO:
    case EROFS:
    case ENODEV:
    case ENXIO:
    case ESTALE:
      return WithReason(std::move(status), kReasonStorage);
    default:
      return status;
  }
}

bool IsStorageError(const absl::Status& status) { return ReasonOf(status) == kReasonStorage; }

}  // namespace wan
