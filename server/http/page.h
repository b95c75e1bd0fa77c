// The page for browsers (docs/use/page.md): one HTML file that is compiled in, and that uses the
// HTTP API as any caller does.
#pragma once

#include <string_view>

#include "server/http/http_server.h"

namespace wan::server {

// The page: the files in server/http/page, which CMake joins into one.
extern const std::string_view kPageHtml;

// Returns the answer to GET and HEAD of the page: the file, or 304 if If-None-Match names it. The
// answer's header lets the page run its own script and style, call this server and show its videos,
// and lets no other page embed it.
HttpAnswer PageAnswer(const HttpHead& head);

}  // namespace wan::server
