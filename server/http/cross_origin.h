// Lets pages of other origins than the server's own read its answers (CORS).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http_server.h"

namespace wan::server {

// Thread-safe. It never allows credentials that the browser adds by itself, cookies and client
// certificates, so such a page acts with the token that it sends.
class CrossOrigin {
 public:
  // `origins` has the origins of the pages, as browsers send them: "https://studio.example.com".
  explicit CrossOrigin(std::vector<std::string> origins) : origins_(std::move(origins)) {}

  // Returns the answer for a request in which a browser asks, before the real request, whether a
  // page of a listed origin may send it; nothing for other requests. `methods` are those that the
  // path accepts.
  std::optional<HttpAnswer> Preflight(const HttpHead& head,
                                      const std::vector<std::string_view>& methods) const;

  // Adds to an answer, also to a refusal, that the page which sent the request may read it.
  void AddTo(HttpAnswer& answer, const HttpHead& head) const;

 private:
  // Returns the origin of the request if it is listed; otherwise an empty text.
  std::string_view ListedOrigin(const HttpHead& head) const;

  const std::vector<std::string> origins_;
};

}  // namespace wan::server
