// Defines the reasons and payloads of the server's statuses, in addition to those of
// engine/api/errors.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace wan::server {

// RESOURCE_EXHAUSTED with a retry delay: the queue has no room.
inline constexpr std::string_view kReasonQueueFull = "QUEUE_FULL";
// FAILED_PRECONDITION: the model is known, but it is neither loaded nor being loaded.
inline constexpr std::string_view kReasonModelNotReady = "MODEL_NOT_READY";
// The model is being loaded; generation requests get UNAVAILABLE with a retry delay, calls of
// ModelManagement get FAILED_PRECONDITION.
inline constexpr std::string_view kReasonModelLoading = "MODEL_LOADING";
// FAILED_PRECONDITION: jobs for the model wait or run.
inline constexpr std::string_view kReasonModelInUse = "MODEL_IN_USE";
// FAILED_PRECONDITION: the name is loaded from another path or with other LoRAs.
inline constexpr std::string_view kReasonModelLoaded = "MODEL_LOADED";
// NOT_FOUND: no object has this name.
inline constexpr std::string_view kReasonModelNotFound = "MODEL_NOT_FOUND";
inline constexpr std::string_view kReasonOperationNotFound = "OPERATION_NOT_FOUND";
inline constexpr std::string_view kReasonJobNotFound = "JOB_NOT_FOUND";
inline constexpr std::string_view kReasonArtifactNotFound = "ARTIFACT_NOT_FOUND";
inline constexpr std::string_view kReasonReportNotFound = "REPORT_NOT_FOUND";
// NOT_FOUND: the object existed and was removed.
inline constexpr std::string_view kReasonExpired = "EXPIRED";
// FAILED_PRECONDITION: the request of the job was not progressive, so nobody can watch its video
// while it is made.
inline constexpr std::string_view kReasonNotProgressive = "NOT_PROGRESSIVE";
// ABORTED: the attempt that made the watched video has ended before the video was complete.
inline constexpr std::string_view kReasonLiveVideoCut = "LIVE_VIDEO_CUT";
// FAILED_PRECONDITION: the job is still waiting or running.
inline constexpr std::string_view kReasonJobNotEnded = "JOB_NOT_ENDED";
// FAILED_PRECONDITION: the job has ended, so the field can no longer change.
inline constexpr std::string_view kReasonJobEnded = "JOB_ENDED";
// ALREADY_EXISTS: the request_id belongs to another request.
inline constexpr std::string_view kReasonRequestIdReused = "REQUEST_ID_REUSED";
// DATA_LOSS: the job's row in the store cannot be read.
inline constexpr std::string_view kReasonJobDamaged = "JOB_DAMAGED";
// The data folder is full, read-only or missing, and cannot be written. Callers get the code
// UNAVAILABLE and a retry delay.
inline constexpr std::string_view kReasonStorageUnavailable = "STORAGE_UNAVAILABLE";
// RESOURCE_EXHAUSTED with a retry delay: the disk has too little space for another job's files.
inline constexpr std::string_view kReasonDiskReserve = "DISK_RESERVE";
// FAILED_PRECONDITION: the request of the job has RESUME_REQUIRE, and its savepoint cannot be used.
inline constexpr std::string_view kReasonSavepointUnusable = "SAVEPOINT_UNUSABLE";
// INTERNAL: the job has lost too many attempts with the process or the device.
inline constexpr std::string_view kReasonAttemptsExhausted = "ATTEMPTS_EXHAUSTED";
// RESOURCE_EXHAUSTED with a retry delay: the server works on too many requests or streams.
inline constexpr std::string_view kReasonServerBusy = "SERVER_BUSY";
// RESOURCE_EXHAUSTED: the principal's quota (server/quota) is exceeded. The error has a retry delay
// if waiting helps.
inline constexpr std::string_view kReasonQuotaExceeded = "QUOTA_EXCEEDED";
// UNAVAILABLE with a retry delay: the server is stopping.
inline constexpr std::string_view kReasonServerStopping = "SERVER_STOPPING";
// UNAVAILABLE with a retry delay: the server is being drained or is drained.
inline constexpr std::string_view kReasonServerDraining = "SERVER_DRAINING";
// FAILED_PRECONDITION: Undrain was called, but there is no drain to end.
inline constexpr std::string_view kReasonNotDraining = "NOT_DRAINING";
// ABORTED: Undrain has reverted the drain for which the call waited.
inline constexpr std::string_view kReasonDrainTakenBack = "DRAIN_TAKEN_BACK";

// Returns a copy of the error with another message and the same code and payloads.
absl::Status WithMessage(const absl::Status& status, std::string_view message);

// Attaches the time after which the caller should retry.
absl::Status WithRetryDelay(absl::Status status, absl::Duration delay);

// Returns the delay that WithRetryDelay has attached; nothing if there is none.
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);

// Attaches an entry to the google.rpc.ErrorInfo of the status. Neither key nor value may contain a
// newline, and the key may not contain '='.
absl::Status WithMetadata(absl::Status status, std::string_view key, std::string_view value);

// Returns the entries that WithMetadata has attached to the status.
std::map<std::string, std::string> MetadataOf(const absl::Status& status);

// Returns RESOURCE_EXHAUSTED (QUEUE_FULL).
absl::Status QueueFullError(int capacity, absl::Duration retry_delay);

// Returns NOT_FOUND (JOB_NOT_FOUND).
absl::Status JobNotFoundError(std::string_view job_name);

// Returns NOT_FOUND (EXPIRED).
absl::Status ExpiredError(std::string_view name);

// Returns FAILED_PRECONDITION (SAVEPOINT_UNUSABLE). `why` is a clause about the savepoint.
absl::Status SavepointUnusableError(std::string_view why);

// Returns FAILED_PRECONDITION (JOB_NOT_ENDED).
absl::Status JobNotEndedError(std::string_view job_name);

// Returns UNAVAILABLE (DEVICE_LOST of engine/api/errors.h) with a retry delay, for calls after the
// server has lost its last device.
absl::Status DeviceGoneError();

// Returns RESOURCE_EXHAUSTED (SERVER_BUSY). `what` is a clause that says which limit was reached.
absl::Status ServerBusyError(std::string_view what, absl::Duration retry_delay);

// Says how a call would exceed a principal's quota.
struct QuotaExcess {
  // Name of the principal; empty on a server that does not authenticate its callers.
  std::string principal;
  std::string quota;  // name of the field of wan.v1.Quota
  std::string used;   // what is used now, a number as text
  std::string limit;
  // A clause for the message about the principal: "has 3 queued jobs and asks for 2 more".
  std::string what;
  // Time after which the same call would be accepted; nullopt if waiting does not help (see
  // `remedy`).
  std::optional<absl::Duration> retry_delay;
  std::string remedy;
};

// Returns RESOURCE_EXHAUSTED (QUOTA_EXCEEDED). QuotaFailureOf returns the error's
// google.rpc.QuotaFailure.
absl::Status QuotaExceededError(const QuotaExcess& excess);

struct QuotaFailure {
  std::string subject;  // the principal, as "principal:NAME"
  std::string description;
};
std::optional<QuotaFailure> QuotaFailureOf(const absl::Status& status);

// Returns UNAVAILABLE (STORAGE_UNAVAILABLE) with a retry delay and the cause's message. Use
// StorageUnavailableError for calls that ask for a new job.
absl::Status StorageUnavailableError(const absl::Status& cause);

// Like StorageUnavailableError, but with a message for calls that change or remove existing
// objects.
absl::Status ChangeNotStoredError(const absl::Status& cause);

// Returns UNAVAILABLE (SERVER_STOPPING).
absl::Status ServerStoppingError();

// Returns UNAVAILABLE (SERVER_DRAINING).
absl::Status ServerDrainingError();

// Returns FAILED_PRECONDITION (NOT_DRAINING).
absl::Status NotDrainingError(bool stopping);

// Returns ABORTED (DRAIN_TAKEN_BACK).
absl::Status DrainTakenBackError();

}  // namespace wan::server
