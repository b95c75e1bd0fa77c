// Continues the work of a call after a wait that held no thread.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "server/calls/gatekeeper.h"
#include "server/calls/worker_pool.h"
#include "server/jobs/turns.h"

namespace wan::server {

// Carries tasks out in the call's class of work, in the turns of its party, also when its caller is
// gone or the server stops. The pool must outlive what it returns.
inline PostTask PostOf(WorkerPool& pool, std::shared_ptr<const Call> call) {
  return [&pool, call = std::move(call)](std::function<void()> task) {
    pool.Post(call->work(), call->party(), /*gone=*/nullptr,
              [task = std::move(task)](const absl::Status& /*turn*/) { task(); });
  };
}

// Carries steps that decode pictures out, in a class of their own, in the turns of the call's
// party. `gone` says whether the caller is gone, on any thread. The pool must outlive what it
// returns.
inline PostStep DecodingOf(WorkerPool& pool, std::shared_ptr<const Call> call,
                           std::function<bool()> gone) {
  return [&pool, call = std::move(call),
          gone = std::move(gone)](std::function<void(const absl::Status& turn)> step) {
    pool.Post(WorkClass::kDecoding, call->party(), gone, std::move(step));
  };
}

// Carries a task out that answers a call after a wait, on a thread that answers may take: the one
// that has waited, for example for the disk, serves others as well.
inline void PostAnswer(WorkerPool& pool, const Call& call, std::function<void()> task) {
  pool.Post(WorkClass::kQuick, call.party(), /*gone=*/nullptr,
            [task = std::move(task)](const absl::Status& /*turn*/) { task(); });
}

}  // namespace wan::server
