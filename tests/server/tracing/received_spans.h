// A collector's view of the spans that were posted to it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/http_receiver.h"

namespace wan::support {

struct ReceivedSpan {
  std::string trace_id;
  std::string tracestate;
  std::string span_id;
  std::string parent_span_id;  // empty: none
  std::string name;
  int kind = 0;
  int64_t start_nanos = 0;  // since the epoch
  int64_t end_nanos = 0;
  std::map<std::string, std::string> attributes;  // with every value as text
  std::vector<std::string> links;                 // IDs of spans
  bool failed = false;
  std::string problem;
};

// Decodes posts as OTLP's JSON form; throws if one is something else. Later spans with the ID of an
// earlier one are there as well.
std::vector<ReceivedSpan> SpansOf(const std::vector<HttpReceiver::Post>& posts);

// The spans with this name, in the order of their starts.
std::vector<ReceivedSpan> Named(const std::vector<ReceivedSpan>& spans, const std::string& name);

// The attributes of the resource of a post.
std::map<std::string, std::string> ResourceOf(const HttpReceiver::Post& post);

}  // namespace wan::support
