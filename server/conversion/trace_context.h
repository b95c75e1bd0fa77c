// Parses the trace that a caller sends with a call: W3C Trace Context, over HTTP or gRPC.
#pragma once

#include <string_view>
#include <vector>

#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns the trace that the values of these header fields describe. The trace's ID is empty unless
// `traceparent` has exactly one value, which is valid. The standard says to ignore invalid values,
// because a trace must never make a call fail. Leaves out an invalid `tracestate`, and shortens one
// longer than 512 characters by the rules of the standard.
wan::v1::TraceContext ParseTraceContext(const std::vector<std::string_view>& traceparent,
                                        const std::vector<std::string_view>& tracestate);

}  // namespace wan::server
