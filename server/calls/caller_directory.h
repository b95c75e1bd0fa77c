// Maps the local sockets that gRPC serves to their callers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace wan::server {

struct ConnectedCaller {
  std::string peer;                 // as gRPC writes it: "ipv4:192.0.2.7:41234"
  std::string certificate_subject;  // as RFC 2253 has it; empty without a certificate
};

// For each call gRPC gives the name of the socket at the other end of its connection. The relay
// owns that end, gives it a name of this directory, and never gives a name twice, so that a call
// which outlives its connection cannot be taken for one of another caller. A caller has no
// influence on the name. Thread-safe.
class CallerDirectory {
 public:
  CallerDirectory();
  CallerDirectory(const CallerDirectory&) = delete;
  CallerDirectory& operator=(const CallerDirectory&) = delete;

  // Returns the name, for a socket address of the abstract namespace.
  std::string Add(ConnectedCaller caller);
  void Remove(const std::string& name);

  // `peer` is what gRPC says of a call: "unix-abstract:NAME". Null if the connection has ended.
  std::shared_ptr<const ConnectedCaller> Find(std::string_view peer) const;

 private:
  const std::string prefix_;  // of this object among all of the machine
  mutable absl::Mutex mutex_;
  uint64_t added_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, std::shared_ptr<const ConnectedCaller>> callers_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
