#include "server/http/video_routes.h"

#include <optional>

namespace wan::server {
namespace {

constexpr std::string_view kGet = "GET";
constexpr std::string_view kHead = "HEAD";

constexpr VideoRoute kRoutes[] = {
    {"GET /", VideoAction::kPage},
    {"GET /health", VideoAction::kHealth},
    {"GET /openapi.json", VideoAction::kOpenApi},
    {"GET /v1/server", VideoAction::kServer},
    {"POST /v1/videos/quote", VideoAction::kQuote},
    {"POST /v1/videos", VideoAction::kCreate},
    {"GET /v1/videos", VideoAction::kList},
    {"GET /v1/videos/{id}", VideoAction::kGet},
    {"GET /v1/videos/{id}/events", VideoAction::kEvents},
    {"GET /v1/videos/{id}/report", VideoAction::kReport},
    {"GET /v1/videos/{id}/content", VideoAction::kContent},
    {"DELETE /v1/videos/{id}", VideoAction::kDelete},
    {"GET /v1/models", VideoAction::kModels},
    {"GET /v1/models/{id}", VideoAction::kModel},
};

bool IsOff(const VideoRoute& route, const OptionalRoutes& optional) {
  return (route.action == VideoAction::kPage && !optional.page) ||
         (route.action == VideoAction::kHealth && !optional.health);
}

// Returns the text in the place of {id} if `path` matches the route, an empty text if the route has
// no {id}; nullopt if the path does not match.
std::optional<std::string> IdIn(std::string_view route_path, std::string_view path) {
  constexpr std::string_view kPlace = "{id}";
  const size_t at = route_path.find(kPlace);
  if (at == std::string_view::npos) {
    if (path != route_path) return std::nullopt;
    return "";
  }
  const std::string_view before = route_path.substr(0, at);
  const std::string_view behind = route_path.substr(at + kPlace.size());
  if (path.size() <= before.size() + behind.size() || !path.starts_with(before) ||
      !path.ends_with(behind)) {
    return std::nullopt;
  }
  path.remove_prefix(before.size());
  path.remove_suffix(behind.size());
  if (path.find('/') != std::string_view::npos) return std::nullopt;
  return std::string(path);
}

}  // namespace

RouteMatch FindVideoRoute(std::string_view method, std::string_view path,
                          const OptionalRoutes& optional) {
  RouteMatch match;
  for (const VideoRoute& route : kRoutes) {
    if (IsOff(route, optional)) continue;
    const size_t space = route.rule.find(' ');
    const std::optional<std::string> id = IdIn(route.rule.substr(space + 1), path);
    if (!id.has_value()) continue;
    const std::string_view own = route.rule.substr(0, space);
    match.methods.push_back(own);
    if (own == kGet) match.methods.push_back(kHead);
    if (method != own && !(method == kHead && own == kGet)) continue;
    match.route = &route;
    match.id = *id;
  }
  return match;
}

std::vector<std::string_view> VideoRoutes(const OptionalRoutes& optional) {
  std::vector<std::string_view> rules;
  for (const VideoRoute& route : kRoutes) {
    if (!IsOff(route, optional)) rules.push_back(route.rule);
  }
  return rules;
}

}  // namespace wan::server
