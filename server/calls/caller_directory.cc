#include "server/calls/caller_directory.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

// All processes of the machine share the abstract namespace; 64 random bits keep their names apart.
std::string NewPrefix() {
  std::random_device random;
  return absl::StrCat("wanserve-", absl::Hex(random(), absl::kZeroPad8),
                      absl::Hex(random(), absl::kZeroPad8), "-");
}

}  // namespace

CallerDirectory::CallerDirectory() : prefix_(NewPrefix()) {}

std::string CallerDirectory::Add(ConnectedCaller caller) {
  auto added = std::make_shared<const ConnectedCaller>(std::move(caller));
  absl::MutexLock lock(&mutex_);
  std::string name = absl::StrCat(prefix_, ++added_);
  callers_.emplace(name, std::move(added));
  return name;
}

void CallerDirectory::Remove(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  callers_.erase(name);
}

std::shared_ptr<const ConnectedCaller> CallerDirectory::Find(std::string_view peer) const {
  constexpr std::string_view kScheme = "unix-abstract:";
  if (!peer.starts_with(kScheme)) return nullptr;
  const std::string name(peer.substr(kScheme.size()));
  absl::MutexLock lock(&mutex_);
  const auto found = callers_.find(name);
  return found == callers_.end() ? nullptr : found->second;
}

}  // namespace wan::server
