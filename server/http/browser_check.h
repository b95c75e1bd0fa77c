// Decides which requests of web pages the server lets in. Any page can make a browser send
// requests, with the rights of the browser's user.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/http/http_server.h"

namespace wan::server {

struct BrowserRules {
  // Whether callers must be authenticated.
  bool authenticates = false;
  // Whether only this machine can reach the address.
  bool loopback = true;
  // Whether the server serves its page for browsers (page.h).
  bool page = true;
  // The origins of other pages that are let in, as browsers send them.
  std::vector<std::string> origins = {};
};

// Returns PERMISSION_DENIED for a request that a web page may have sent without its reader's
// consent. Returns OK for a request with a token, because no browser adds a token by itself.
// Without a token only the server's own page may send requests: `Origin` must name the same host
// and port as `Host`, or be listed where callers are not authenticated. If callers are not
// authenticated, `Host` must also be localhost or an IP address, and with `loopback` an address of
// this machine, because strangers can make their own domain names resolve to this server. Also
// refuses requests with which a page of another site loads something only to show it
// (`Sec-Fetch-Site`), except `/`.
//
// On an address that other machines reach, a GET without `Origin` is not refused, whatever its
// `Host` is, because programs use the server's name. The price: a page can read the answer to a GET
// without `Origin` if a stranger made the page's host name resolve to this server.
absl::Status CheckBrowser(const HttpHead& head, const BrowserRules& rules);

}  // namespace wan::server
