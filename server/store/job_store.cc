#include "server/store/job_store.h"

namespace wan::server {

bool IsFinal(wan::v1::JobState state) {
  return state == wan::v1::JOB_STATE_COMPLETED || state == wan::v1::JOB_STATE_FAILED ||
         state == wan::v1::JOB_STATE_CANCELLED;
}

}  // namespace wan::server
