// The IDs of traces and spans. The IDs of a job and its attempts are derived from their names, so
// that every process that works on the job uses the same ones.
#pragma once

#include <string>
#include <string_view>

#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns a new trace without a parent. A share of `sampling_ratio` (0 to 1) is sampled; the ID
// decides.
wan::v1::TraceContext NewTrace(double sampling_ratio);

// The span ID of a job, "jobs/ID", and of its attempt.
std::string JobSpanId(std::string_view job);
std::string AttemptSpanId(std::string_view job, int attempt);

// A random ID, for a span that only this process knows.
std::string NewSpanId();

}  // namespace wan::server
