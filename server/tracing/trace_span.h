// OpenTelemetry's spans, and OTLP's JSON form of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/time/time.h"

namespace wan::server {

struct SpanAttribute {
  std::string key;
  std::variant<std::string, int64_t, double, bool> value;
};

// All IDs are in hexadecimal digits: 32 of a trace, 16 of a span.
struct TraceSpan {
  std::string trace_id;
  std::string tracestate;
  std::string span_id;
  std::string parent_span_id;  // empty: none
  // Whether another process asked for the work (span kind SERVER).
  bool serves_caller = false;
  std::string name;
  absl::Time start;
  absl::Time end;
  std::vector<SpanAttribute> attributes;
  std::vector<std::string> linked_span_ids;  // of the same trace
  // Whether the status is ERROR, and why.
  bool failed = false;
  std::string problem;
};

// Returns an ExportTraceServiceRequest. `resource` are the attributes of this process, `version` is
// the server's.
std::string ToExportRequest(const std::vector<SpanAttribute>& resource, std::string_view version,
                            const std::vector<TraceSpan>& spans);

// The spans of an accepted request that the collector rejected.
struct PartialSuccess {
  int64_t rejected_spans = 0;
  std::string message;
};
// Reads it from an ExportTraceServiceResponse. If the text is something else, none was rejected.
PartialSuccess ParseExportResponse(std::string_view text);

}  // namespace wan::server
