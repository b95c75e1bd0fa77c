#include "tests/server/tracing/received_spans.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace wan::support {
namespace {

using nlohmann::json;

std::map<std::string, std::string> AttributesOf(const json& list) {
  std::map<std::string, std::string> attributes;
  for (const json& attribute : list) {
    const json& value = *attribute.at("value").begin();
    attributes[attribute.at("key")] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return attributes;
}

ReceivedSpan Decode(const json& span) {
  ReceivedSpan received;
  received.trace_id = span.at("traceId");
  received.tracestate = span.value("traceState", "");
  received.span_id = span.at("spanId");
  received.parent_span_id = span.value("parentSpanId", "");
  received.name = span.at("name");
  received.kind = span.at("kind");
  received.start_nanos = std::stoll(span.at("startTimeUnixNano").get<std::string>());
  received.end_nanos = std::stoll(span.at("endTimeUnixNano").get<std::string>());
  received.attributes = AttributesOf(span.at("attributes"));
  for (const json& link : span.value("links", json::array())) {
    received.links.push_back(link.at("spanId"));
  }
  const json status = span.value("status", json::object());
  received.failed = status.value("code", 0) == 2;
  received.problem = status.value("message", "");
  return received;
}

}  // namespace

std::vector<ReceivedSpan> SpansOf(const std::vector<HttpReceiver::Post>& posts) {
  std::vector<ReceivedSpan> spans;
  for (const HttpReceiver::Post& post : posts) {
    const json body = json::parse(post.body);
    for (const json& resource : body.at("resourceSpans")) {
      for (const json& scope : resource.at("scopeSpans")) {
        for (const json& span : scope.at("spans")) spans.push_back(Decode(span));
      }
    }
  }
  return spans;
}

std::vector<ReceivedSpan> Named(const std::vector<ReceivedSpan>& spans, const std::string& name) {
  std::vector<ReceivedSpan> named;
  for (const ReceivedSpan& span : spans) {
    if (span.name == name) named.push_back(span);
  }
  std::stable_sort(named.begin(), named.end(),
                   [](const auto& a, const auto& b) { return a.start_nanos < b.start_nanos; });
  return named;
}

std::map<std::string, std::string> ResourceOf(const HttpReceiver::Post& post) {
  return AttributesOf(
      json::parse(post.body).at("resourceSpans").at(0).at("resource").at("attributes"));
}

}  // namespace wan::support
