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

// Returns why a request is refused that a page may have sent for which the caller did not mean it;
// OK otherwise. A token shows that the caller means it, because no browser adds one by itself.
// Without one, only the server's own page may ask (`Origin` and `Host` are the same). If nobody is
// authenticated, its Host must be one that no stranger can give a page, a name of this machine
// (`loopback`) or an address: a name may be made to mean this server. PERMISSION_DENIED.
absl::Status CheckBrowser(const HttpHead& head, const BrowserRules& rules);

}  // namespace wan::server
