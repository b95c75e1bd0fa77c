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
  // Whether the server has a page of its own (page.h).
  bool page = true;
  // The origins of other pages that are let in, as browsers send them.
  std::vector<std::string> origins = {};
};

// Returns PERMISSION_DENIED for a request that a web page may have sent without the wish of its
// reader. Returns OK for a request with a token, because no browser adds a token by itself. Without
// a token only the server's own page may send requests: `Origin` must name the same host and port
// as `Host`, or be listed where callers are not authenticated. If callers are not authenticated,
// that host must also be localhost or an address, and with `loopback` an address of this machine: a
// stranger can let a name of theirs point to this server. Also refused is what a page from
// elsewhere loads only to show it (`Sec-Fetch-Site`), except `/`.
//
// On an address that other machines reach, a GET without `Origin` is not refused, whatever its
// `Host` is, because programs use the server's name. The price: a page whose host name, under a
// stranger's control, points to the server can read the answer of such a GET.
absl::Status CheckBrowser(const HttpHead& head, const BrowserRules& rules);

}  // namespace wan::server
