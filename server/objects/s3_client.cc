#include "server/objects/s3_client.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "server/objects/s3_answers.h"
#include "server/objects/signer.h"

namespace wan::server {
namespace {

constexpr size_t kMostBody = size_t{4} << 20;
// A request whose connection moves nothing for this time is sent again.
constexpr std::chrono::seconds kStallTime{10};
constexpr std::chrono::milliseconds kLeastTime{100};

ObjectOutcome OutcomeOf(const absl::Status& status) {
  if (status.ok()) return ObjectOutcome::kOk;
  if (absl::IsNotFound(status)) return ObjectOutcome::kNotFound;
  return absl::IsUnavailable(status) ? ObjectOutcome::kFailed : ObjectOutcome::kRefused;
}

bool IsSuccess(const OutboundAnswer& answer) { return answer.status >= 200 && answer.status < 300; }

}  // namespace

S3Client::S3Client(S3Options options, Clock& clock) : options_(std::move(options)), clock_(clock) {
  const size_t host = options_.endpoint.find("://") + 3;
  host_ = options_.endpoint.substr(host);
  if (!options_.path_style) host_ = absl::StrCat(options_.bucket, ".", host_);
  scheme_and_host_ = options_.endpoint.substr(0, host) + host_;
}

absl::Time S3Client::DeadlineOf(const ObjectCall& call, uint64_t bytes) const {
  return steady().Now() + call.patience + absl::Seconds(static_cast<double>(bytes >> 20));
}

void S3Client::Note(const Request& request, ObjectOutcome outcome, int64_t begin,
                    uint64_t received) {
  const auto nanos = static_cast<double>(clock_.MonotonicNanos() - begin);
  options_.on_request({request.operation, outcome, nanos * 1e-9, request.body.size(), received});
}

absl::StatusOr<S3Client::Answer> S3Client::SendOnce(const Request& request,
                                                    const OutboundSink& sink, absl::Time deadline,
                                                    const std::stop_token& stop) {
  const absl::StatusOr<S3Credentials> credentials = FindCredentials(options_.environment);
  if (!credentials.ok()) return credentials.status();
  const absl::Time now = clock_.Now();
  const std::string path =
      UriEncode(absl::StrCat(options_.path_style ? "/" + options_.bucket : "", "/", request.key),
                /*keep_slashes=*/true);
  S3Request to_sign{request.method, host_, path, request.query, request.fields, request.body};
  OutboundRequest http{request.method, scheme_and_host_ + path,
                       Sign(to_sign, *credentials, options_.region, now), request.body};
  if (!request.query.empty()) http.url += "?" + CanonicalQuery(request.query);
  http.fields.emplace_back("content-type", "application/octet-stream");
  OutboundOptions options;
  options.allow_http = true;
  options.ca_file = options_.ca_file;
  options.stall_time = kStallTime;
  options.whole_time = std::max(kLeastTime, absl::ToChronoMilliseconds(deadline - steady().Now()));
  Answer answer;
  const auto take = [&](const OutboundAnswer& head, std::string_view piece) {
    if (IsSuccess(head) && sink != nullptr) return sink(head, piece);
    if (piece.size() > kMostBody - answer.body.size()) return false;
    answer.body.append(piece);
    return true;
  };
  const int64_t begin = clock_.MonotonicNanos();
  absl::StatusOr<OutboundAnswer> sent = http_.Send(options, http, take, stop);
  if (!sent.ok()) {
    Note(request, ObjectOutcome::kUnreachable, begin, 0);
    return absl::Status(sent.status().code(), absl::StrCat("objects: ", options_.endpoint, ": ",
                                                           sent.status().message()));
  }
  answer.http = *std::move(sent);
  absl::Status status;
  // S3 reports some failures after it has sent the status 200.
  if (!IsSuccess(answer.http) || IsTransient(answer.http, answer.body)) {
    status = ErrorOf(
        answer.http, answer.body,
        {options_.endpoint, options_.bucket, options_.region, request.key, request.right}, now);
  }
  Note(request, OutcomeOf(status), begin, answer.http.received);
  if (!status.ok()) return status;
  return answer;
}

absl::Status S3Client::Again(const absl::Status& problem, BackOff& back_off, absl::Time deadline,
                             const std::stop_token& stop) {
  if (!absl::IsUnavailable(problem)) return problem;
  const absl::Duration pause = back_off.Next();
  if (steady().Now() + pause >= deadline) return problem;
  if (Pause(clock_, pause, stop)) return absl::OkStatus();
  return absl::CancelledError("objects: the call was stopped");
}

absl::StatusOr<S3Client::Answer> S3Client::Send(const Request& request, absl::Time deadline,
                                                const std::stop_token& stop) {
  BackOff back_off(absl::Milliseconds(200), absl::Seconds(5));
  for (;;) {
    absl::StatusOr<Answer> answer = SendOnce(request, nullptr, deadline, stop);
    if (answer.ok()) return answer;
    if (absl::Status status = Again(answer.status(), back_off, deadline, stop); !status.ok()) {
      return status;
    }
  }
}

}  // namespace wan::server
