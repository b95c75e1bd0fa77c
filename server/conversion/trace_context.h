// Reads the trace that a caller sends along with a call: W3C Trace Context, of HTTP and of gRPC.
#pragma once

#include <string_view>
#include <vector>

#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns the trace that these values of `traceparent` and `tracestate` name; without an ID if the
// former are not one valid value. The standard has such a value ignored, because a trace must never
// cost a call. A `tracestate` that is not valid is left out by itself, and one longer than 512
// characters is shortened as the standard says.
wan::v1::TraceContext ParseTraceContext(const std::vector<std::string_view>& traceparent,
                                        const std::vector<std::string_view>& tracestate);

}  // namespace wan::server
