// The paths of the OpenAI video API and of the page for browsers. This header includes no header of
// gRPC.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wan::server {

enum class VideoAction {
  kPage,
  kHealth,
  kOpenApi,
  kServer,
  kQuote,
  kCreate,
  kList,
  kGet,
  kEvents,
  kReport,
  kContent,
  kDelete,
  kModels,
  kModel
};

struct VideoRoute {
  std::string_view rule;  // for example "GET /v1/videos/{id}"; the key of the route's MethodRule
  VideoAction action;
};

// Says which route a request takes.
struct RouteMatch {
  const VideoRoute* route = nullptr;  // never destroyed; null if no route has this method and path
  std::string id;  // the text in the place of {id}; empty if the route has no {id}
  // The methods that the path accepts; empty for an unknown path.
  std::vector<std::string_view> methods;
};

// Whether the server has the routes that an operator may switch off.
struct OptionalRoutes {
  bool page = true;
  bool health = true;
};

// Returns the route of a request. A HEAD request takes the route of GET; the server sends the
// answer without the body.
RouteMatch FindVideoRoute(std::string_view method, std::string_view path,
                          const OptionalRoutes& optional = {});

// Returns the rules of all routes, as keys of the table in server/auth/method_rules.h.
std::vector<std::string_view> VideoRoutes(const OptionalRoutes& optional = {});

}  // namespace wan::server
