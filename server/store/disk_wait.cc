#include "server/store/disk_wait.h"

#include <utility>

namespace wan::server {
namespace {

thread_local DiskWait* wait_of_this_thread = nullptr;

}  // namespace

DiskWait* DiskWait::OfThisThread() { return wait_of_this_thread; }

MayWaitForDisk::MayWaitForDisk(DiskWait& wait)
    : before_(std::exchange(wait_of_this_thread, &wait)) {}

MayWaitForDisk::~MayWaitForDisk() { wait_of_this_thread = before_; }

}  // namespace wan::server
