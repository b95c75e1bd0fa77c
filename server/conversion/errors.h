// Reasons and payloads of the server's statuses, beside those of engine/api/errors.h.
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace wan::server {

// RESOURCE_EXHAUSTED: as many jobs wait as may wait. Carries a retry delay.
inline constexpr std::string_view kReasonQueueFull = "QUEUE_FULL";
// FAILED_PRECONDITION: the model is known, but neither resident nor on its way.
inline constexpr std::string_view kReasonModelNotReady = "MODEL_NOT_READY";
// UNAVAILABLE with a retry delay (requests), FAILED_PRECONDITION (other models' tasks).
inline constexpr std::string_view kReasonModelLoading = "MODEL_LOADING";
// FAILED_PRECONDITION: jobs for the model wait or run.
inline constexpr std::string_view kReasonModelInUse = "MODEL_IN_USE";
// FAILED_PRECONDITION: the name is resident from another path.
inline constexpr std::string_view kReasonModelLoaded = "MODEL_LOADED";
// NOT_FOUND.
inline constexpr std::string_view kReasonModelNotFound = "MODEL_NOT_FOUND";
inline constexpr std::string_view kReasonJobNotFound = "JOB_NOT_FOUND";
inline constexpr std::string_view kReasonArtifactNotFound = "ARTIFACT_NOT_FOUND";
inline constexpr std::string_view kReasonReportNotFound = "REPORT_NOT_FOUND";
// ALREADY_EXISTS: the request_id belongs to another request.
inline constexpr std::string_view kReasonRequestIdReused = "REQUEST_ID_REUSED";
// DATA_LOSS: the job's row in the store cannot be read.
inline constexpr std::string_view kReasonJobDamaged = "JOB_DAMAGED";
// The data folder is full, read-only or gone. UNAVAILABLE with a retry delay to callers.
inline constexpr std::string_view kReasonStorageUnavailable = "STORAGE_UNAVAILABLE";
// INTERNAL, as a job's error: as many of its attempts as may took the process or device with them.
inline constexpr std::string_view kReasonAttemptsExhausted = "ATTEMPTS_EXHAUSTED";
// RESOURCE_EXHAUSTED with a retry delay: too much is under way.
inline constexpr std::string_view kReasonServerBusy = "SERVER_BUSY";
// UNAVAILABLE with a retry delay.
inline constexpr std::string_view kReasonServerStopping = "SERVER_STOPPING";

// Attaches how long the caller should wait before it tries again.
absl::Status WithRetryDelay(absl::Status status, absl::Duration delay);

// The delay of a status; nothing if it has none.
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);

// RESOURCE_EXHAUSTED, QUEUE_FULL.
absl::Status QueueFullError(int capacity, absl::Duration retry_delay);

// NOT_FOUND, JOB_NOT_FOUND.
absl::Status JobNotFoundError(std::string_view job_name);

// UNAVAILABLE, DEVICE_LOST (engine/api/errors.h), with a retry delay: for calls that come after the
// server has lost its device.
absl::Status DeviceGoneError();

// RESOURCE_EXHAUSTED, SERVER_BUSY. `what` says of what there is too much.
absl::Status ServerBusyError(std::string_view what, absl::Duration retry_delay);

// UNAVAILABLE, STORAGE_UNAVAILABLE, with a retry delay and what the storage said.
absl::Status StorageUnavailableError(const absl::Status& cause);

// UNAVAILABLE, SERVER_STOPPING.
absl::Status ServerStoppingError();

}  // namespace wan::server
