// Which requests of web pages are let in. A browser sends them for any page, with the rights that
// its user has.
#pragma once

#include "absl/status/status.h"
#include "server/http/http_server.h"

namespace wan::server {

struct BrowserRules {
  // Whether callers are authenticated.
  bool authenticates = false;
  // Whether only this machine reaches the address.
  bool loopback = true;
  // Whether the server has a page of its own (page.h).
  bool page = true;
};

// Returns PERMISSION_DENIED for a request that a web page may have sent without its reader's wish.
// A request with a token is OK, because no browser adds one by itself. Without a token only the
// server's own page may ask: `Origin` names the same host and port as `Host`. If nobody is
// authenticated, that host must also be localhost or an address, with `loopback` of this machine:
// a stranger can let a name of theirs point to this server. What a page of another address loads
// only to show it is refused as well (`Sec-Fetch-Site`), but for `/`.
//
// Not refused: on an address that others reach, a GET without `Origin` under any `Host`, because
// programs use the server's name. A page under a name that points to the server can read it.
absl::Status CheckBrowser(const HttpHead& head, const BrowserRules& rules);

}  // namespace wan::server
