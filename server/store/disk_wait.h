// Tells the store which threads may wait for the disk. If a thread may wait, the store writes and
// syncs a change on this thread; switching to another thread would take longer than the change
// itself.
#pragma once

namespace wan::server {

// The actions of a thread before and after it waits for the disk.
class DiskWait {
 public:
  virtual ~DiskWait() = default;

  // Called before the thread waits, for milliseconds or, if the disk hangs, for minutes. A thread
  // of a worker pool lets another thread take over its tasks.
  virtual void Begin() = 0;
  // Called after the wait.
  virtual void End() = 0;

  // Returns null if the calling thread must not wait.
  static DiskWait* OfThisThread();
};

// While this object lives, the thread that made it may wait. `wait` must outlive the object.
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
