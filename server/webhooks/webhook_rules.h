// Decides to which URLs and addresses webhooks may be sent.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

namespace wan::server {

struct WebhookRules {
  // Allowed hosts: each entry is "HOST", which means the default port of the scheme, or
  // "HOST:PORT". If the list is empty, webhooks are off.
  std::vector<std::string> hosts;
  // Whether URLs with http are allowed in addition to https.
  bool allow_http = false;
  // Whether a host may have an address of a private network or of this machine.
  bool allow_private = false;
};

// Returns what is wrong with an entry of `hosts`; empty if the entry is valid.
std::string HostEntryProblem(std::string_view entry);

// Returns what is wrong with a webhook_url; empty if the URL is valid. Does not resolve the host's
// name.
std::string WebhookUrlProblem(const WebhookRules& rules, std::string_view url);

// Returns the host of a URL that WebhookUrlProblem accepts; empty for other URLs.
std::string WebhookHostOf(std::string_view url);

// Whether the address is public: the address is in no private, loopback or link-local network, and
// does not embed another address (such as 6to4). Returns false for families other than IPv4 and
// IPv6.
bool IsPublicAddress(const sockaddr& address);

}  // namespace wan::server
