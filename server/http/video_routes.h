// The paths of the OpenAI video API, and of the page. No gRPC header is included here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wan::server {

enum class VideoAction { kPage, kCreate, kList, kGet, kContent, kDelete, kModels, kModel };

struct VideoRoute {
  std::string_view rule;  // "GET /v1/videos/{id}", the key of its MethodRule
  VideoAction action;
};

// Which route a request takes.
struct RouteMatch {
  const VideoRoute* route = nullptr;      // static; null if none has this method and path
  std::string id;                         // what stands in the place of {id}; empty without one
  std::vector<std::string_view> methods;  // that the path takes; empty for an unknown path
};

// HEAD takes the route of GET: its answer is the same, and is sent without the body. Without `page`
// the path of the page is unknown.
RouteMatch FindVideoRoute(std::string_view method, std::string_view path, bool page = true);

// All rules, as the table of methods has them; without `page` that of the page is left out.
std::vector<std::string_view> VideoRoutes(bool page = true);

}  // namespace wan::server
