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
  std::string peer;                 // the address in gRPC's form: "ipv4:192.0.2.7:41234"
  std::string certificate_subject;  // the subject in RFC 2253 form; empty without a certificate
};

// gRPC does not see the caller's address, only the local socket over which ConnectionRelay passes
// the connection. The relay gives each such socket a name from this directory. A name is never used
// twice, so a call that outlives its connection cannot be attributed to another caller, and callers
// cannot choose their name. Thread-safe.
class CallerDirectory {
 public:
  CallerDirectory();
  CallerDirectory(const CallerDirectory&) = delete;
  CallerDirectory& operator=(const CallerDirectory&) = delete;

  // Stores the caller under a new name, which the relay uses as the address of its socket in the
  // abstract namespace.
  std::string Add(ConnectedCaller caller);
  void Remove(const std::string& name);

  // `peer` is grpc::ServerContext::peer: "unix-abstract:NAME". Returns null if the connection of
  // `peer` has ended.
  std::shared_ptr<const ConnectedCaller> Find(std::string_view peer) const;

 private:
  const std::string prefix_;  // begins every name; unique on this machine
  mutable absl::Mutex mutex_;
  uint64_t added_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, std::shared_ptr<const ConnectedCaller>> callers_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
