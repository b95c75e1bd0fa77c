// Makes the IDs of traces and spans. The IDs of a job and its attempts are computed from their
// names, so that every process that works on the job uses the same IDs.
#pragma once

#include <string>
#include <string_view>

#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns a new trace; its spans have no parent in another process. The trace's ID decides whether
// the trace is sampled; the probability is `sampling_ratio` (0 to 1).
wan::v1::TraceContext NewTrace(double sampling_ratio);

// These functions return the ID of the span of a job ("jobs/ID"), and of the span of one of the
// job's attempts.
std::string JobSpanId(std::string_view job);
std::string AttemptSpanId(std::string_view job, int attempt);

// Returns a random ID for a span, which only this process knows.
std::string NewSpanId();

}  // namespace wan::server
