#include "server/calls/request_target.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace wan::server {

std::optional<RequestTarget> ParseRequestTarget(std::string_view target) {
  RequestTarget parsed;
  for (const absl::string_view scheme : {"http://", "https://"}) {
    if (!absl::StartsWithIgnoreCase({target.data(), target.size()}, scheme)) continue;
    target.remove_prefix(scheme.size());
    const size_t end = std::min(target.find_first_of("/?"), target.size());
    parsed.host = std::string(target.substr(0, end));
    target.remove_prefix(end);
    if (parsed.host.empty() || parsed.host.find('@') != std::string::npos) return std::nullopt;
    parsed.path = target.starts_with('/') ? "" : "/";
    break;
  }
  const size_t question = std::min(target.find('?'), target.size());
  parsed.path += target.substr(0, question);
  if (question < target.size()) parsed.query = std::string(target.substr(question + 1));
  return parsed;
}

}  // namespace wan::server
