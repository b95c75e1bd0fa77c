// Tells the store which threads may wait for the disk. On such a thread a change is written and
// synced without changing to another thread, which would take longer than the change itself.
#pragma once

namespace wan::server {

// The action of a thread around such a wait.
class DiskWait {
 public:
  virtual ~DiskWait() = default;

  // Called before the thread waits, for milliseconds or, if the disk hangs, for minutes. A thread
  // that works for others lets another thread take over.
  virtual void Begin() = 0;
  // Called after the wait.
  virtual void End() = 0;

  // Returns null if the calling thread must not wait.
  static DiskWait* OfThisThread();
};

// While this object lives, the thread that made it may wait. `wait` must outlive it.
class MayWaitForDisk {
 public:
  explicit MayWaitForDisk(DiskWait& wait);
  MayWaitForDisk(const MayWaitForDisk&) = delete;
  MayWaitForDisk& operator=(const MayWaitForDisk&) = delete;
  ~MayWaitForDisk();

 private:
  DiskWait* const before_;
};

}  // namespace wan::server
