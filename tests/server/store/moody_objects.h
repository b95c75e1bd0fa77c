// A folder of objects that can be away.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/objects/object_store.h"
#include "server/store/folder_object_store.h"

namespace wan::server {

class MoodyObjects final : public ObjectStore {
 public:
  explicit MoodyObjects(const std::filesystem::path& folder) : store_(folder) {}

  // While it is away, every call fails at once with UNAVAILABLE.
  void SetAway(bool away) { away_ = away; }

  std::string Name() const override { return store_.Name(); }
  absl::Status Put(const std::string& key, std::string_view bytes,
                   const ObjectCall& call) override {
    return away_ ? Away() : store_.Put(key, bytes, call);
  }
  absl::Status PutFile(const std::string& key, const std::filesystem::path& file,
                       const ObjectCall& call) override {
    return away_ ? Away() : store_.PutFile(key, file, call);
  }
  absl::Status Get(const std::string& key, const ObjectRange& range, const Sink& sink,
                   const ObjectCall& call) override {
    return away_ ? Away() : store_.Get(key, range, sink, call);
  }
  absl::StatusOr<ObjectFacts> Stat(const std::string& key, const ObjectCall& call) override {
    if (away_) return Away();
    return store_.Stat(key, call);
  }
  absl::Status List(const std::string& prefix, const std::function<bool(const ObjectFacts&)>& visit,
                    const ObjectCall& call) override {
    ++listings_;
    return away_ ? Away() : store_.List(prefix, visit, call);
  }
  absl::Status Remove(const std::string& key, const ObjectCall& call) override {
    return away_ ? Away() : store_.Remove(key, call);
  }
  absl::Status RemovePrefix(const std::string& prefix, const ObjectCall& call) override {
    {
      absl::MutexLock lock(&mutex_);
      prefixes_.push_back(prefix);
    }
    return away_ ? Away() : store_.RemovePrefix(prefix, call);
  }

  // Returns the number of calls of List so far.
  int listings() const { return listings_; }
  // Returns the prefixes of the calls of RemovePrefix so far.
  std::vector<std::string> prefixes() const {
    absl::MutexLock lock(&mutex_);
    return prefixes_;
  }

 private:
  static absl::Status Away() { return absl::UnavailableError("objects: s3.secret.host is away"); }

  FolderObjectStore store_;
  std::atomic<bool> away_ = false;
  std::atomic<int> listings_ = 0;
  mutable absl::Mutex mutex_;
  std::vector<std::string> prefixes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
