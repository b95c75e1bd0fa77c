// Lets pages of other origins than the server's own read its answers (CORS).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http_server.h"

namespace wan::server {

// Thread-safe. Never allows the credentials that browsers add by themselves (cookies, client
// certificates), so a page has only the rights of the token that the page sends.
class CrossOrigin {
 public:
  // `origins` has the origins of the pages, as browsers send them: "https://studio.example.com".
  explicit CrossOrigin(std::vector<std::string> origins) : origins_(std::move(origins)) {}

  // Returns the answer for a request in which a browser asks, before the real request, whether a
  // page of a listed origin may send it; nothing for other requests. `methods` are the methods that
  // the path accepts.
  std::optional<HttpAnswer> Preflight(const HttpHead& head,
                                      const std::vector<std::string_view>& methods) const;

  // Adds header fields to an answer (or refusal), so that the browser lets the page that sent the
  // request read the answer.
  void AddTo(HttpAnswer& answer, const HttpHead& head) const;

 private:
  // Returns the origin of the request if it is listed; otherwise an empty text.
  std::string_view ListedOrigin(const HttpHead& head) const;

  const std::vector<std::string> origins_;
};

}  // namespace wan::server
