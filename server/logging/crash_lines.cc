#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstddef>

#include "server/logging/logger.h"

namespace wan::server {
namespace {

constexpr int kCrashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
constexpr size_t kCrashCount = sizeof(kCrashes) / sizeof(kCrashes[0]);
constexpr timespec kLookAgain{0, 1'000'000};
constexpr int kLooks = 1'000;

// The pointer is global, because signal handlers are plain functions.
std::atomic<const LineQueue*> queue_at_crash{nullptr};
struct sigaction actions_before[kCrashCount];

// Waits while the queue's own thread writes the lines. A signal handler may wait safely, but may
// not write the lines itself.
void OnCrash(int signal) {
  const LineQueue* const queue = queue_at_crash;
  for (int i = 0; i < kLooks && queue->waiting_bytes() > 0; ++i) nanosleep(&kLookAgain, nullptr);
  for (size_t i = 0; i < kCrashCount; ++i) {
    if (kCrashes[i] == signal) sigaction(signal, &actions_before[i], nullptr);
  }
  // When the handler returns, the signal is delivered again and ends the process, as it would
  // without the handler.
  raise(signal);
}

}  // namespace

void WriteLinesAtCrash(const Logger& logger) {
  if (logger.queue() == nullptr) return;
  queue_at_crash = logger.queue();
  struct sigaction action = {};
  action.sa_handler = OnCrash;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kCrashCount; ++i) sigaction(kCrashes[i], &action, &actions_before[i]);
}

}  // namespace wan::server
