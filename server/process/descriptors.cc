#include "server/process/descriptors.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace wan::server {
namespace {

constexpr int64_t kMostConnections = 16'384;
constexpr int64_t kUnknownLimit = 1'024;  // the usual default of Linux

int64_t SoftLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  constexpr rlim_t kMost = INT64_MAX;
  return static_cast<int64_t>(std::min(limit.rlim_cur, kMost));
}

}  // namespace

void RaiseDescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  // Ignore errors: the soft limit then stays, and a metric shows the limit.
  setrlimit(RLIMIT_NOFILE, &limit);
}

DescriptorUse DescriptorsNow() {
  DescriptorUse use;
  use.limit = SoftLimit();
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    ++use.open;
  }
  // Do not count the descriptor of the folder that is being read here.
  if (use.open > 0) --use.open;
  return use;
}

int ConnectionsFor(int64_t descriptor_limit) {
  const int64_t limit = descriptor_limit > 0 ? descriptor_limit : kUnknownLimit;
  return static_cast<int>(std::clamp<int64_t>(limit / 4, 1, kMostConnections));
}

}  // namespace wan::server
