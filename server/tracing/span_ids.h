// Makes the IDs of traces and spans. The IDs of a job and its attempts are derived from their
// names, so that every process that works on the job uses the same IDs.
#pragma once

#include <string>
#include <string_view>

#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns a new trace without a parent. It is sampled with the probability `sampling_ratio` (0 to
// 1), decided by its ID.
wan::v1::TraceContext NewTrace(double sampling_ratio);

// Return the span ID of a job ("jobs/ID") and of one of its attempts.
std::string JobSpanId(std::string_view job);
std::string AttemptSpanId(std::string_view job, int attempt);

// Returns a random ID, for a span that only this process knows.
std::string NewSpanId();

}  // namespace wan::server
