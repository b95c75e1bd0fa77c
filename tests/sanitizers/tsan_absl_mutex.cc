// Tells ThreadSanitizer what absl::Mutex and absl::Notification do.
//
// The distribution's Abseil is built without ThreadSanitizer, which then sees no lock at all and
// calls everything that a mutex guards a race. The definitions here take the place of the shared
// library's in executables that are built with -fsanitize=thread: each calls the library's own
// function and reports the order that it makes. Reads inside the library's calls are not looked at:
// a mutex evaluates the conditions of others while it is being released.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/base/options.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

#define WAN_TEXT_OF(name) #name
#define WAN_TEXT(name) WAN_TEXT_OF(name)
constexpr char kInlineNamespace[] = WAN_TEXT(ABSL_OPTION_INLINE_NAMESPACE_NAME);

// The library's function. `prefix` and `rest` are its mangled name around "absl::NAMESPACE".
template <typename Function>
Function* Library(const char* prefix, const char* rest) {
  const std::string name = std::string(prefix) + "4absl" +
                           std::to_string(sizeof(kInlineNamespace) - 1) + kInlineNamespace + rest;
  void* const found = dlsym(RTLD_NEXT, name.c_str());
  if (found == nullptr) {
    std::fprintf(stderr, "tsan_absl_mutex: this Abseil has no %s\n", name.c_str());
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

class IgnoreReads {
 public:
  IgnoreReads() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  IgnoreReads(const IgnoreReads&) = delete;
  IgnoreReads& operator=(const IgnoreReads&) = delete;
  ~IgnoreReads() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
};

// What is done with a mutex held, and with it released in between.
template <typename Call>
auto ReleasedDuring(void* mutex, const Call& call) -> decltype(call()) {
  struct Acquire {
    void* mutex;
    ~Acquire() { __tsan_acquire(mutex); }
  };
  __tsan_release(mutex);
  const Acquire acquire{mutex};
  const IgnoreReads ignore;
  return call();
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static auto* const lock = Library<void(Mutex*)>("_ZN", "5Mutex4LockEv");
  lock(this);
  __tsan_acquire(this);
}

bool Mutex::TryLock() {
  static auto* const try_lock = Library<bool(Mutex*)>("_ZN", "5Mutex7TryLockEv");
  const bool locked = try_lock(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::Unlock() {
  static auto* const unlock = Library<void(Mutex*)>("_ZN", "5Mutex6UnlockEv");
  __tsan_release(this);
  const IgnoreReads ignore;
  unlock(this);
}

void Mutex::ReaderLock() {
  static auto* const lock = Library<void(Mutex*)>("_ZN", "5Mutex10ReaderLockEv");
  lock(this);
  __tsan_acquire(this);
}

void Mutex::ReaderUnlock() {
  static auto* const unlock = Library<void(Mutex*)>("_ZN", "5Mutex12ReaderUnlockEv");
  __tsan_release(this);
  const IgnoreReads ignore;
  unlock(this);
}

void Mutex::Await(const Condition& condition) {
  static auto* const await =
      Library<void(Mutex*, const Condition&)>("_ZN", "5Mutex5AwaitERKNS0_9ConditionE");
  ReleasedDuring(this, [&] { await(this, condition); });
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const await = Library<bool(Mutex*, const Condition&, Duration)>(
      "_ZN", "5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return ReleasedDuring(this, [&] { return await(this, condition, timeout); });
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static auto* const await = Library<bool(Mutex*, const Condition&, Time)>(
      "_ZN", "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return ReleasedDuring(this, [&] { return await(this, condition, deadline); });
}

void Mutex::LockWhen(const Condition& condition) {
  static auto* const lock =
      Library<void(Mutex*, const Condition&)>("_ZN", "5Mutex8LockWhenERKNS0_9ConditionE");
  {
    const IgnoreReads ignore;
    lock(this, condition);
  }
  __tsan_acquire(this);
}

void CondVar::Wait(Mutex* mutex) {
  static auto* const wait = Library<void(CondVar*, Mutex*)>("_ZN", "7CondVar4WaitEPNS0_5MutexE");
  ReleasedDuring(mutex, [&] { wait(this, mutex); });
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static auto* const wait = Library<bool(CondVar*, Mutex*, Duration)>(
      "_ZN", "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  return ReleasedDuring(mutex, [&] { return wait(this, mutex, timeout); });
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static auto* const wait = Library<bool(CondVar*, Mutex*, Time)>(
      "_ZN", "7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  return ReleasedDuring(mutex, [&] { return wait(this, mutex, deadline); });
}

void Notification::Notify() {
  static auto* const notify = Library<void(Notification*)>("_ZN", "12Notification6NotifyEv");
  __tsan_release(this);
  notify(this);
}

void Notification::WaitForNotification() const {
  static auto* const wait =
      Library<void(const Notification*)>("_ZNK", "12Notification19WaitForNotificationEv");
  wait(this);
  __tsan_acquire(const_cast<Notification*>(this));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static auto* const wait = Library<bool(const Notification*, Duration)>(
      "_ZNK", "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE");
  const bool notified = wait(this, timeout);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  static auto* const wait = Library<bool(const Notification*, Time)>(
      "_ZNK", "12Notification31WaitForNotificationWithDeadlineENS0_4TimeE");
  const bool notified = wait(this, deadline);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

ABSL_NAMESPACE_END
}  // namespace absl
