#include "server/quota/device_account.h"

#include <algorithm>

#include "server/conversion/convert.h"

namespace wan::server {

void DeviceAccount::Recall(const wan::v1::Job& job) {
  recent_.Add(job.owner(), absl::Seconds(job.device_seconds()), ToTime(job.end_time()));
}

void DeviceAccount::RecallUnended(wan::v1::Job& job, absl::Time heard) {
  const absl::Time start = ToTime(job.start_time());
  recent_.Add(job.owner(), absl::Seconds(job.device_seconds()), start);
  if (job.state() != wan::v1::JOB_STATE_RUNNING || heard <= start) return;
  job.set_device_seconds(job.device_seconds() + absl::ToDoubleSeconds(heard - start));
  recent_.Add(job.owner(), heard - start, heard);
}

void DeviceAccount::Begin(const wan::v1::Job& job, absl::Duration estimate) {
  estimates_[job.name()] = estimate;
  recent_.Add(job.owner(), estimate, ToTime(job.start_time()));
}

void DeviceAccount::End(wan::v1::Job& job, absl::Time now) {
  const absl::Time start = ToTime(job.start_time());
  const auto estimate = estimates_.extract(job.name());
  if (!estimate.empty()) recent_.Add(job.owner(), -estimate.mapped(), start);
  const absl::Duration held = std::max(now - start, absl::ZeroDuration());
  job.set_device_seconds(job.device_seconds() + absl::ToDoubleSeconds(held));
  recent_.Add(job.owner(), held, now);
}

}  // namespace wan::server
