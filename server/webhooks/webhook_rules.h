// Where webhooks may go.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

namespace wan::server {

struct WebhookRules {
  // "HOST", which means its default port, or "HOST:PORT". Empty: there are no webhooks.
  std::vector<std::string> hosts;
  // Whether http is allowed beside https.
  bool allow_http = false;
  // Whether a host's address may be one of a private network or of this machine.
  bool allow_private = false;
};

// What is wrong with an entry of `hosts`; empty: nothing.
std::string HostEntryProblem(std::string_view entry);

// What is wrong with a URL to which a job's end is to be reported; empty: nothing. Looks nothing
// up.
std::string WebhookUrlProblem(const WebhookRules& rules, std::string_view url);

// The host of a URL in which nothing is wrong; empty for others.
std::string WebhookHostOf(std::string_view url);

// Whether everybody may have this address on the internet: it is no address of a private network,
// of this machine or its link, and none that stands for others. Other families than IPv4 and IPv6
// are not.
bool IsPublicAddress(const sockaddr& address);

}  // namespace wan::server
