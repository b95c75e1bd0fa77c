// The IDs of traces and spans. Those of a job and its attempts follow from their names, so that
// every process that works on a job gives them the same ones.
#pragma once

#include <string>
#include <string_view>

#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns a new trace without a parent. So many of them, from 0 to 1, are sampled; it follows from
// the ID whether one is.
wan::v1::TraceContext NewTrace(double sampling_ratio);

// The ID of the span of a job, "jobs/ID", and of its attempt.
std::string JobSpanId(std::string_view job);
std::string AttemptSpanId(std::string_view job, int attempt);

// The ID of a span that only one process knows.
std::string NewSpanId();

}  // namespace wan::server
