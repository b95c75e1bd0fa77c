// Defines OpenTelemetry spans, and converts them to the JSON form of OTLP.
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
  std::string parent_span_id;  // empty: the span has no parent
  // Whether another process has asked for the work (span kind SERVER).
  bool serves_caller = false;
  std::string name;
  absl::Time start;
  absl::Time end;
  std::vector<SpanAttribute> attributes;
  std::vector<std::string> linked_span_ids;  // IDs of other spans of the same trace
  // Whether the status of the span is ERROR, and the error's message.
  bool failed = false;
  std::string problem;
};

// Returns an ExportTraceServiceRequest. `resource` has the attributes of this process, and
// `version` is the server's.
std::string ToExportRequest(const std::vector<SpanAttribute>& resource, std::string_view version,
                            const std::vector<TraceSpan>& spans);

// The part of a collector's answer that reports rejected spans, although the request was accepted.
struct PartialSuccess {
  int64_t rejected_spans = 0;
  std::string message;
};
// Parses an ExportTraceServiceResponse. Returns a result without rejected spans if the text has
// another form.
PartialSuccess ParseExportResponse(std::string_view text);

}  // namespace wan::server
