// Decides to which URLs and addresses webhooks may go.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

namespace wan::server {

struct WebhookRules {
  // "HOST", with the scheme's default port, or "HOST:PORT". Empty: webhooks are off.
  std::vector<std::string> hosts;
  // Whether http is allowed as well as https.
  bool allow_http = false;
  // Whether hosts may have an address of a private network or of this machine.
  bool allow_private = false;
};

// Returns what is wrong with an entry of `hosts`; empty if nothing.
std::string HostEntryProblem(std::string_view entry);

// Returns what is wrong with a webhook_url; empty if nothing. Resolves no names.
std::string WebhookUrlProblem(const WebhookRules& rules, std::string_view url);

// Returns the host of a URL that WebhookUrlProblem accepts; empty for others.
std::string WebhookHostOf(std::string_view url);

// Whether the address is public: not in a private, loopback or link-local network, and not one that
// embeds another address. False for families other than IPv4 and IPv6.
bool IsPublicAddress(const sockaddr& address);

}  // namespace wan::server
