// Continues the work of a call on the worker pool after an asynchronous wait.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "server/calls/gatekeeper.h"
#include "server/calls/worker_pool.h"
#include "server/jobs/turns.h"

namespace wan::server {

// Returns a PostTask that posts to the pool with the call's class of work and party. The tasks run
// even if the caller has gone or the server stops. The pool must outlive the result.
inline PostTask PostOf(WorkerPool& pool, std::shared_ptr<const Call> call) {
  return [&pool, call = std::move(call)](std::function<void()> task) {
    pool.Post(call->work(), call->party(), /*gone=*/nullptr,
              [task = std::move(task)](const absl::Status& /*turn*/) { task(); });
  };
}

// Returns a PostStep that posts the decoding of images to the pool, in the class kDecoding. `gone`
// says whether the caller has gone; it may be called on any thread. The pool must outlive the
// result.
inline PostStep DecodingOf(WorkerPool& pool, std::shared_ptr<const Call> call,
                           std::function<bool()> gone) {
  return [&pool, call = std::move(call),
          gone = std::move(gone)](std::function<void(const absl::Status& turn)> step) {
    pool.Post(WorkClass::kDecoding, call->party(), gone, std::move(step));
  };
}

// Runs a task that answers a call after a wait. Use PostAnswer after asynchronous waits, because
// other calls need the thread that completed the wait, for example the store's thread.
inline void PostAnswer(WorkerPool& pool, const Call& call, std::function<void()> task) {
  if (pool.IsWorker()) return task();
  pool.Post(WorkClass::kQuick, call.party(), /*gone=*/nullptr,
            [task = std::move(task)](const absl::Status& /*turn*/) { task(); });
}

}  // namespace wan::server
