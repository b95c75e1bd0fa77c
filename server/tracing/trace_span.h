// OpenTelemetry spans, and their conversion to OTLP's JSON form.
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

// IDs are hexadecimal: 32 digits for a trace, 16 for a span.
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
  std::vector<std::string> linked_span_ids;  // spans of the same trace
  // Whether the span's status is ERROR, and the error message.
  bool failed = false;
  std::string problem;
};

// Returns an ExportTraceServiceRequest. `resource` are the attributes of this process, `version` is
// the server's.
std::string ToExportRequest(const std::vector<SpanAttribute>& resource, std::string_view version,
                            const std::vector<TraceSpan>& spans);

// Spans of a request that the collector rejected although it accepted the request.
struct PartialSuccess {
  int64_t rejected_spans = 0;
  std::string message;
};
// Parses an ExportTraceServiceResponse. Returns no rejected spans for other texts.
PartialSuccess ParseExportResponse(std::string_view text);

}  // namespace wan::server
