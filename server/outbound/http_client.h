// Sends HTTP requests to other servers. Webhooks, traces and the object store use it.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace wan::server {

struct OutboundOptions {
  // Whether URLs with http are allowed in addition to https.
  bool allow_http = false;
  // Returns whether the request may connect to an address. Post calls the function when the host's
  // name is resolved; the connection then uses exactly the address that was checked. Null: every
  // address is allowed.
  std::function<bool(const sockaddr& address)> may_connect;
  // PEM file of the authorities with which certificates are verified; empty: those of the system.
  // The file is read for each connection; while it cannot be read, every request fails.
  std::string ca_file;
  std::chrono::milliseconds connect_time{10'000};
  // Maximum time for the whole request, from its start to the end of the answer.
  std::chrono::milliseconds whole_time{30'000};
  // A request fails if no byte moves for this time; zero: only `whole_time` counts.
  std::chrono::seconds stall_time{0};
};

using OutboundFields = std::vector<std::pair<std::string, std::string>>;

struct OutboundRequest {
  std::string method;
  std::string url;  // sent as it is: dots in the path stay
  OutboundFields fields;
  std::string_view body;  // must outlive the request
};

struct OutboundAnswer {
  int status = 0;
  OutboundFields fields;  // with names in lower case
  // The time that the header field Retry-After names.
  std::optional<absl::Duration> retry_after;
  uint64_t received = 0;  // bytes of the body

  // Returns the value of the first field of this lower-case name; empty if there is none.
  std::string_view Field(std::string_view name) const;
};

// Receives the pieces of an answer's body, and the answer's header. Returns false to end the
// transfer.
using OutboundSink = std::function<bool(const OutboundAnswer& answer, std::string_view piece)>;

// Keeps connections open for later requests. Thread-safe.
class HttpClient {
 public:
  HttpClient() = default;
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  // Sends the request, passes the answer's body to `sink`, and returns the answer whatever its
  // status is, also if `sink` has ended it. Blocks until the answer has ended or `stop` is
  // requested. Follows no redirects and uses no proxy.
  //
  // Errors: PERMISSION_DENIED if may_connect refuses the address; CANCELLED after a stop;
  // UNAVAILABLE, with the cause in the message, if no whole answer comes or its header has more
  // than 64 KiB. An error may come after pieces of the body.
  absl::StatusOr<OutboundAnswer> Send(const OutboundOptions& options,
                                      const OutboundRequest& request, const OutboundSink& sink,
                                      std::stop_token stop);

 private:
  // Returns a handle of libcurl (CURL*) without options; null if none can be made.
  void* Take();
  void Return(void* handle);

  absl::Mutex mutex_;
  std::vector<void*> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
