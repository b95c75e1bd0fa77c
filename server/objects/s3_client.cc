#include "server/objects/s3_client.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/objects/s3_answers.h"
#include "server/objects/signer.h"

namespace wan::server {
namespace {

constexpr size_t kMostBody = size_t{4} << 20;
// A request whose connection moves nothing for this time is sent again; one with a body has more,
// because the service answers after it has stored the body.
constexpr absl::Duration kStallTime = absl::Seconds(10);
constexpr absl::Duration kBodyStallTime = absl::Seconds(60);
// A body may take the time that it takes at this rate.
constexpr double kLeastBytesPerSecond = 64 << 10;
constexpr absl::Duration kLeastTime = absl::Milliseconds(100);

ObjectOutcome OutcomeOf(const absl::Status& status) {
  if (status.ok()) return ObjectOutcome::kOk;
  if (absl::IsNotFound(status)) return ObjectOutcome::kNotFound;
  return absl::IsUnavailable(status) ? ObjectOutcome::kFailed : ObjectOutcome::kRefused;
}

bool IsSuccess(const OutboundAnswer& answer) { return answer.status >= 200 && answer.status < 300; }

// Returns an error unless the answer shows that the service has done what was asked.
absl::Status CheckProof(const S3Client::Request& request, const S3Client::Answer& answer,
                        const std::string& endpoint) {
  std::string_view missing;
  if (request.needs == S3Client::Needs::kTag && answer.http.Field("etag").empty()) {
    missing = "an ETag";
  }
  if (request.needs == S3Client::Needs::kCompleted &&
      answer.body.find("<CompleteMultipartUploadResult") == std::string::npos) {
    missing = "a CompleteMultipartUploadResult";
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("objects: ", endpoint, " answers ", answer.http.status,
                                             " without ", std::string(missing),
                                             ", so that nothing may be stored; if this stays, "
                                             "check the endpoint"));
}

// Whether a success has an error in its body: S3 reports some failures after it has sent the status
// 200.
bool HasError(const S3Client::Request& request, const S3Client::Answer& answer) {
  if (IsTransient(answer.http, answer.body)) return true;
  if (answer.body.find("<Error>") != std::string::npos) return true;
  return request.needs == S3Client::Needs::kCompleted &&
         answer.body.find("<CompleteMultipartUploadResult") == std::string::npos &&
         !ElementText(answer.body, "Code").empty();
}

void SetTimes(const S3Client::Request& request, absl::Duration left, OutboundOptions& options) {
  const absl::Duration stall = request.body.empty() ? kStallTime : kBodyStallTime;
  options.stall_time = absl::ToChronoSeconds(std::max(stall, request.least_time));
  const auto bytes = static_cast<double>(request.body.size());
  options.whole_time = absl::ToChronoMilliseconds(std::max(
      {kLeastTime, left, request.least_time, absl::Seconds(bytes / kLeastBytesPerSecond)}));
}

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
  SetTimes(request, deadline - steady().Now(), options);
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
  absl::Status status = CheckProof(request, answer, options_.endpoint);
  if (!IsSuccess(answer.http) || HasError(request, answer)) {
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
