#include "server/http/cross_origin.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace wan::server {
namespace {

// The header fields of requests and answers that a page may use in addition to those that CORS
// always allows.
constexpr char kRequestFields[] =
    "Authorization, Content-Type, Idempotency-Key, If-None-Match, If-Range, Last-Event-ID, Range, "
    "traceparent, tracestate";
constexpr char kAnswerFields[] =
    "Accept-Ranges, Content-Disposition, Content-Length, Content-Range, ETag, Retry-After, "
    "WWW-Authenticate, x-should-retry";
// How many seconds a browser may keep the answer to a preflight.
constexpr char kMaxAge[] = "600";

void Append(std::string* text, std::string_view method) { text->append(method); }

}  // namespace

std::string_view CrossOrigin::ListedOrigin(const HttpHead& head) const {
  const std::vector<std::string_view> sent = head.All("origin");
  if (sent.size() != 1) return {};
  const auto listed = std::find(origins_.begin(), origins_.end(), sent.front());
  return listed == origins_.end() ? std::string_view() : std::string_view(*listed);
}

std::optional<HttpAnswer> CrossOrigin::Preflight(
    const HttpHead& head, const std::vector<std::string_view>& methods) const {
  if (head.method != "OPTIONS" || head.First("access-control-request-method").empty() ||
      methods.empty() || ListedOrigin(head).empty()) {
    return std::nullopt;
  }
  HttpAnswer answer;
  answer.status = 204;
  answer.fields = {{"Access-Control-Allow-Methods", absl::StrJoin(methods, ", ", Append)},
                   {"Access-Control-Allow-Headers", kRequestFields},
                   {"Access-Control-Max-Age", kMaxAge}};
  // Browsers send this header field when a public page calls a server in a private network.
  if (!head.First("access-control-request-private-network").empty()) {
    answer.fields.emplace_back("Access-Control-Allow-Private-Network", "true");
  }
  return answer;
}

void CrossOrigin::AddTo(HttpAnswer& answer, const HttpHead& head) const {
  if (origins_.empty()) return;
  answer.fields.emplace_back("Vary", "Origin");
  const std::string_view origin = ListedOrigin(head);
  if (origin.empty()) return;
  answer.fields.emplace_back("Access-Control-Allow-Origin", std::string(origin));
  answer.fields.emplace_back("Access-Control-Expose-Headers", kAnswerFields);
}

}  // namespace wan::server
