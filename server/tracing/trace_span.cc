#include "server/tracing/trace_span.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

using nlohmann::json;

// Values of enums of OTLP, which are numbers in JSON.
constexpr int kKindInternal = 1;
constexpr int kKindServer = 2;
constexpr int kStatusError = 2;
// Flags of a span: `sampled` of W3C, and whether the parent is remote, if that is known.
constexpr int kSampled = 0x1;
constexpr int kKnowsParent = 0x100;
constexpr int kParentIsRemote = 0x200;

// In Protobuf's JSON form, numbers of 64 bits are strings.
std::string NanosOf(absl::Time time) { return absl::StrCat(absl::ToUnixNanos(time)); }

json ValueOf(const SpanAttribute& attribute) {
  if (const auto* const text = std::get_if<std::string>(&attribute.value)) {
    return {{"stringValue", *text}};
  }
  if (const auto* const number = std::get_if<int64_t>(&attribute.value)) {
    return {{"intValue", absl::StrCat(*number)}};
  }
  if (const auto* const truth = std::get_if<bool>(&attribute.value)) {
    return {{"boolValue", *truth}};
  }
  return {{"doubleValue", std::get<double>(attribute.value)}};
}

json ToJson(const std::vector<SpanAttribute>& attributes) {
  json list = json::array();
  for (const SpanAttribute& attribute : attributes) {
    list.push_back({{"key", attribute.key}, {"value", ValueOf(attribute)}});
  }
  return list;
}

json ToJson(const TraceSpan& span) {
  json object = {{"traceId", span.trace_id},
                 {"spanId", span.span_id},
                 {"name", span.name},
                 {"kind", span.serves_caller ? kKindServer : kKindInternal},
                 {"startTimeUnixNano", NanosOf(span.start)},
                 {"endTimeUnixNano", NanosOf(std::max(span.start, span.end))},
                 {"attributes", ToJson(span.attributes)}};
  int flags = kSampled;
  if (!span.parent_span_id.empty()) {
    object["parentSpanId"] = span.parent_span_id;
    flags |= kKnowsParent | (span.serves_caller ? kParentIsRemote : 0);
  }
  object["flags"] = flags;
  if (!span.tracestate.empty()) object["traceState"] = span.tracestate;
  for (const std::string& linked : span.linked_span_ids) {
    object["links"].push_back({{"traceId", span.trace_id}, {"spanId", linked}});
  }
  if (span.failed) object["status"] = {{"code", kStatusError}, {"message", span.problem}};
  return object;
}

}  // namespace

std::string ToExportRequest(const std::vector<SpanAttribute>& resource, std::string_view version,
                            const std::vector<TraceSpan>& spans) {
  json list = json::array();
  for (const TraceSpan& span : spans) list.push_back(ToJson(span));
  const json scope = {{"scope", {{"name", "wanserve"}, {"version", version}}},
                      {"spans", std::move(list)}};
  const json request = {
      {"resourceSpans", json::array({{{"resource", {{"attributes", ToJson(resource)}}},
                                      {"scopeSpans", json::array({scope})}}})}};
  // Replace bytes that are not UTF-8, because error messages may quote such bytes.
  return request.dump(-1, ' ', false, json::error_handler_t::replace);
}

PartialSuccess ParseExportResponse(std::string_view text) {
  PartialSuccess result;
  const json response = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!response.is_object()) return result;
  const auto partial = response.find("partialSuccess");
  if (partial == response.end() || !partial->is_object()) return result;
  if (const auto rejected = partial->find("rejectedSpans"); rejected != partial->end()) {
    if (rejected->is_number_integer()) result.rejected_spans = rejected->get<int64_t>();
    if (rejected->is_string() &&
        !absl::SimpleAtoi(rejected->get_ref<const std::string&>(), &result.rejected_spans)) {
      result.rejected_spans = 0;
    }
  }
  if (const auto message = partial->find("errorMessage");
      message != partial->end() && message->is_string()) {
    result.message = message->get<std::string>();
  }
  return result;
}

}  // namespace wan::server
