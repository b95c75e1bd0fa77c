#include "server/tracing/trace_span.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace wan::server {
namespace {

using nlohmann::json;

TEST(TraceSpanTest, IsWrittenAsTheProtocolsJson) {
  TraceSpan job;
  job.trace_id = "0af7651916cd43dd8448eb211c80319c";
  job.tracestate = "a=1";
  job.span_id = "00f067aa0ba902b7";
  job.parent_span_id = "b7ad6b7169203331";
  job.serves_caller = true;
  job.name = "generate m";
  job.start = absl::FromUnixNanos(1'700'000'000'123'456'789);
  job.end = job.start + absl::Milliseconds(1500);
  job.attributes = {{"wan.seed", int64_t{9'007'199'254'740'993}}, {"wan.timestep", 999.5}};
  job.failed = true;
  job.problem = "out of memory \xFF";
  TraceSpan attempt;
  attempt.trace_id = job.trace_id;
  attempt.span_id = "1111111111111111";
  attempt.parent_span_id = job.span_id;
  attempt.name = "Total_Execution";
  attempt.start = job.end;
  attempt.end = job.start;  // the wall clock was set back
  attempt.attributes = {{"wan.stopped", true}};
  attempt.linked_span_ids = {"2222222222222222"};
  EXPECT_EQ(json::parse(ToExportRequest({{"service.name", "wanserve"}}, "1.2.3", {job, attempt})),
            json::parse(R"({
    "resourceSpans": [{
      "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "wanserve"}}]},
      "scopeSpans": [{
        "scope": {"name": "wanserve", "version": "1.2.3"},
        "spans": [{
          "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "00f067aa0ba902b7",
          "parentSpanId": "b7ad6b7169203331", "traceState": "a=1", "flags": 769,
          "name": "generate m", "kind": 2,
          "startTimeUnixNano": "1700000000123456789", "endTimeUnixNano": "1700000001623456789",
          "attributes": [{"key": "wan.seed", "value": {"intValue": "9007199254740993"}},
                         {"key": "wan.timestep", "value": {"doubleValue": 999.5}}],
          "status": {"code": 2, "message": "out of memory \ufffd"}
        }, {
          "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "1111111111111111",
          "parentSpanId": "00f067aa0ba902b7", "flags": 257,
          "name": "Total_Execution", "kind": 1,
          "startTimeUnixNano": "1700000001623456789", "endTimeUnixNano": "1700000001623456789",
          "attributes": [{"key": "wan.stopped", "value": {"boolValue": true}}],
          "links": [{"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "2222222222222222"}]
        }]
      }]
    }]})"));
}

TEST(TraceSpanTest, ACollectorMayTakeAPart) {
  const PartialSuccess partial =
      ParseExportResponse(R"({"partialSuccess": {"rejectedSpans": "5", "errorMessage": "full"}})");
  EXPECT_EQ(partial.rejected_spans, 5);
  EXPECT_EQ(partial.message, "full");
  EXPECT_EQ(ParseExportResponse(R"({"partialSuccess": {"rejectedSpans": 7}})").rejected_spans, 7);
  for (const char* const all :
       {"", "{}", "[]", "{\"partialSuccess\": {}}", "not JSON",
        "{\"partialSuccess\": {\"rejectedSpans\": \"many\"}}", "{\"partialSuccess\": 3}"}) {
    EXPECT_EQ(ParseExportResponse(all).rejected_spans, 0) << all;
  }
}

}  // namespace
}  // namespace wan::server
