// The description of the HTTP API in the form of OpenAPI 3.1 (GET /openapi.json). The file
// openapi.json has the description and is compiled in; a test compares the file with the routes,
// the fields of requests and the answers.
#pragma once

#include <string_view>

#include "server/http/http_server.h"
#include "server/http/video_routes.h"

namespace wan::server {

// The content of the file, with the server's version.
extern const std::string_view kOpenApi;

// Returns the description, without the routes that are switched off.
HttpAnswer OpenApiAnswer(const OptionalRoutes& optional);

}  // namespace wan::server
