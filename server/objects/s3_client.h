// Sends signed requests to an S3-compatible service, and sends them again while it fails.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/objects/back_off.h"
#include "server/objects/object_request.h"
#include "server/objects/object_store.h"
#include "server/objects/s3_credentials.h"
#include "server/outbound/http_client.h"

namespace wan::server {

struct S3Options {
  std::string bucket;
  std::string endpoint;  // "https://HOST[:PORT]" (ParseEndpoint)
  std::string region;
  bool path_style = false;
  std::string ca_file;  // empty: the system's
  Environment environment;
  OnObjectRequest on_request = [](const ObjectRequest&) {};
};

// Thread-safe.
class S3Client {
 public:
  // `clock` must outlive the client.
  S3Client(S3Options options, Clock& clock);

  // What a success must have. An answer without it may come from something between, so nothing says
  // that the service has stored what was sent.
  enum class Needs { kNothing, kTag, kCompleted };
  struct Request {
    ObjectOperation operation = ObjectOperation::kPut;
    std::string_view right;  // the permission it needs, for messages
    std::string method;
    std::string key;  // empty: the request is about the bucket
    std::vector<std::pair<std::string, std::string>> query = {};
    std::vector<std::pair<std::string, std::string>> fields = {};
    std::string_view body = {};
    Needs needs = Needs::kNothing;
    // The service may work so long on the request, also past the deadline.
    absl::Duration least_time = absl::ZeroDuration();
  };
  struct Answer {
    OutboundAnswer http;
    std::string body;  // at most 4 MiB
  };

  // Returns the answer of a request that succeeded, or the error (ObjectStore). Sends the request
  // again after a failure that may pass, until `deadline` of the steady clock. A body that moves
  // with 64 KiB per second or more may go on past the deadline.
  absl::StatusOr<Answer> Send(const Request& request, absl::Time deadline,
                              const std::stop_token& stop);

  // Sends the request once, and passes the body of a success to `sink`. UNAVAILABLE: the request
  // may be sent again; all other errors stay.
  absl::StatusOr<Answer> SendOnce(const Request& request, const OutboundSink& sink,
                                  absl::Time deadline, const std::stop_token& stop);

  // Returns the deadline of a call that moves so many bytes.
  absl::Time DeadlineOf(const ObjectCall& call, uint64_t bytes) const;
  // Waits before another try after `problem`; returns the error with which to give up instead, at
  // the deadline or after a stop.
  absl::Status Again(const absl::Status& problem, BackOff& back_off, absl::Time deadline,
                     const std::stop_token& stop);

  Clock& steady() const { return clock_.Steady(); }
  const S3Options& options() const { return options_; }

 private:
  void Note(const Request& request, ObjectOutcome outcome, int64_t begin, uint64_t received);

  const S3Options options_;
  std::string scheme_and_host_;
  std::string host_;
  Clock& clock_;
  HttpClient http_;
};

}  // namespace wan::server
