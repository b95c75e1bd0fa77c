#include "server/conversion/errors.h"

#include <cstdint>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/api/errors.h"

namespace wan::server {
namespace {

constexpr char kRetryDelayUrl[] = "wanserve/retry_delay_nanos";
// The payload's value has lines "KEY=VALUE".
constexpr char kMetadataUrl[] = "wanserve/error_metadata";
constexpr char kQuotaUrl[] = "wanserve/quota_subject";
constexpr absl::Duration kStorageRetryDelay = absl::Seconds(5);
// The delay is short, so that watchers reconnect within 2 s after a restart; a failed attempt costs
// little.
constexpr absl::Duration kStoppingRetryDelay = absl::Seconds(1);
// A process takes about this long to start and load a model.
constexpr absl::Duration kDeviceLostRetryDelay = absl::Seconds(30);

// Returns UNAVAILABLE (STORAGE_UNAVAILABLE): `what` cannot be done because of `cause`.
absl::Status StorageRefused(std::string_view what, const absl::Status& cause) {
  return WithRetryDelay(
      WithReason(absl::UnavailableError(absl::StrCat(std::string(what), ": ", cause.message())),
                 kReasonStorageUnavailable),
      kStorageRetryDelay);
}

}  // namespace

absl::Status WithMessage(const absl::Status& status, std::string_view message) {
  absl::Status said(status.code(), absl::string_view(message.data(), message.size()));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { said.SetPayload(url, payload); });
  return said;
}

absl::Status WithRetryDelay(absl::Status status, absl::Duration delay) {
  status.SetPayload(kRetryDelayUrl, absl::Cord(absl::StrCat(absl::ToInt64Nanoseconds(delay))));
  return status;
}

std::optional<absl::Duration> RetryDelayOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryDelayUrl);
  int64_t nanos = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &nanos)) return std::nullopt;
  return absl::Nanoseconds(nanos);
}

absl::Status WithMetadata(absl::Status status, std::string_view key, std::string_view value) {
  std::string lines(status.GetPayload(kMetadataUrl).value_or(absl::Cord()));
  absl::StrAppend(&lines, std::string(key), "=", std::string(value), "\n");
  status.SetPayload(kMetadataUrl, absl::Cord(lines));
  return status;
}

std::map<std::string, std::string> MetadataOf(const absl::Status& status) {
  std::map<std::string, std::string> entries;
  const std::string lines(status.GetPayload(kMetadataUrl).value_or(absl::Cord()));
  for (const absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> entry = absl::StrSplit(line, absl::MaxSplits('=', 1));
    entries.insert(entry);
  }
  return entries;
}

absl::Status QueueFullError(int capacity, absl::Duration retry_delay) {
  return WithRetryDelay(
      WithReason(absl::ResourceExhaustedError(absl::StrCat(
                     "the queue is full: at most ", capacity, capacity == 1 ? " job" : " jobs",
                     " may wait; try again in ", absl::FormatDuration(retry_delay))),
                 kReasonQueueFull),
      retry_delay);
}

absl::Status JobNotFoundError(std::string_view job_name) {
  return WithReason(absl::NotFoundError(absl::StrCat(std::string(job_name), " does not exist")),
                    kReasonJobNotFound);
}

absl::Status ExpiredError(std::string_view name) {
  return WithReason(absl::NotFoundError(absl::StrCat(std::string(name), " was removed")),
                    kReasonExpired);
}

absl::Status SavepointUnusableError(std::string_view why) {
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "resume: is REQUIRE, and the job's savepoint cannot be used: ", std::string(why),
          "; must be PREFER for a job that may begin at its start")),
      kReasonSavepointUnusable);
}

absl::Status JobNotEndedError(std::string_view job_name) {
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          std::string(job_name), " waits or runs; cancel it, or wait until it has ended")),
      kReasonJobNotEnded);
}

absl::Status DeviceGoneError() {
  return WithRetryDelay(
      DeviceLostError(
          "the server has lost its device and is about to end; its jobs run again after "
          "the restart"),
      kDeviceLostRetryDelay);
}

absl::Status ServerBusyError(std::string_view what, absl::Duration retry_delay) {
  return WithRetryDelay(
      WithReason(absl::ResourceExhaustedError(absl::StrCat(std::string(what), "; try again in ",
                                                           absl::FormatDuration(retry_delay))),
                 kReasonServerBusy),
      retry_delay);
}

absl::Status QuotaExceededError(const QuotaExcess& excess) {
  const bool everybody = excess.principal.empty();
  const std::string who =
      everybody ? "everybody together" : absl::StrCat("the principal '", excess.principal, "'");
  const std::string help =
      excess.retry_delay.has_value()
          ? absl::StrCat("try again in ", absl::FormatDuration(*excess.retry_delay))
          : excess.remedy;
  absl::Status status = WithReason(
      absl::ResourceExhaustedError(absl::StrCat(who, " ", excess.what, "; the quota ", excess.quota,
                                                " is ", excess.limit, "; ", help)),
      kReasonQuotaExceeded);
  status = WithMetadata(std::move(status), "quota", excess.quota);
  status = WithMetadata(std::move(status), "used", excess.used);
  status = WithMetadata(std::move(status), "limit", excess.limit);
  status.SetPayload(
      kQuotaUrl,
      absl::Cord(everybody ? "everybody" : absl::StrCat("principal:", excess.principal)));
  if (!excess.retry_delay.has_value()) return status;
  return WithRetryDelay(std::move(status), *excess.retry_delay);
}

std::optional<QuotaFailure> QuotaFailureOf(const absl::Status& status) {
  const auto subject = status.GetPayload(kQuotaUrl);
  if (!subject.has_value()) return std::nullopt;
  return QuotaFailure{std::string(*subject), std::string(status.message())};
}

absl::Status StorageUnavailableError(const absl::Status& cause) {
  return StorageRefused("the server accepts no new jobs until its storage takes writes again",
                        cause);
}

absl::Status ChangeNotStoredError(const absl::Status& cause) {
  return StorageRefused(
      "the change was not stored, because the server's storage takes no writes; try again when "
      "it does",
      cause);
}

absl::Status ServerStoppingError() {
  return WithRetryDelay(
      WithReason(absl::UnavailableError("the server is stopping; try again after its restart"),
                 kReasonServerStopping),
      kStoppingRetryDelay);
}

absl::Status NotDrainingError(bool stopping) {
  return WithReason(
      absl::FailedPreconditionError(
          stopping ? "the server is stopping, which cannot be taken back; wait for its restart"
                   : "the server is not being drained, so nothing was changed"),
      kReasonNotDraining);
}

absl::Status DrainTakenBackError() {
  return WithReason(absl::AbortedError("the drain was taken back by Undrain; the server accepts "
                                       "and starts jobs again"),
                    kReasonDrainTakenBack);
}

absl::Status ServerDrainingError() {
  return WithRetryDelay(
      WithReason(absl::UnavailableError(
                     "the server is being drained and accepts no new jobs; try another server, or "
                     "this one after its restart or the end of the drain"),
                 kReasonServerDraining),
      kStoppingRetryDelay);
}

}  // namespace wan::server
