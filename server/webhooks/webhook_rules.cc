#include "server/webhooks/webhook_rules.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace wan::server {
namespace {

constexpr size_t kMaxUrl = 2048;

using Url = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

// Returns null if the text is not a URL with a scheme that libcurl knows.
Url Parse(const std::string& text) {
  Url url(curl_url(), curl_url_cleanup);
  if (url != nullptr && curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) {
    url.reset();
  }
  return url;
}

// Returns a part of the URL; empty if the URL does not have that part.
std::string PartOf(const Url& url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

bool IsAllowed(const WebhookRules& rules, const std::string& host, const std::string& port,
               bool default_port) {
  return std::any_of(rules.hosts.begin(), rules.hosts.end(), [&](const std::string& entry) {
    return absl::EqualsIgnoreCase(entry, absl::StrCat(host, ":", port)) ||
           (default_port && absl::EqualsIgnoreCase(entry, host));
  });
}

// Whether the address begins with the first `bits` bits of the prefix.
bool Within(const uint8_t* address, const uint8_t* prefix, int bits) {
  const int bytes = bits / 8;
  if (std::memcmp(address, prefix, static_cast<size_t>(bytes)) != 0) return false;
  const int rest = bits % 8;
  if (rest == 0) return true;
  const int mask = 0xFF << (8 - rest);
  return (address[bytes] & mask) == (prefix[bytes] & mask);
}

// Returns false for the special addresses of RFC 6890 and for multicast.
bool IsPublicV4(const uint8_t* address) {
  static constexpr struct {
    uint8_t prefix[4];
    int bits;
  } kSpecial[] = {{{0}, 8},
                  {{10}, 8},
                  {{100, 64}, 10},
                  {{127}, 8},
                  {{169, 254}, 16},
                  {{172, 16}, 12},
                  {{192, 0, 0}, 24},
                  {{192, 0, 2}, 24},
                  {{192, 88, 99}, 24},
                  {{192, 168}, 16},
                  {{198, 18}, 15},
                  {{198, 51, 100}, 24},
                  {{203, 0, 113}, 24},
                  {{224}, 4},
                  {{240}, 4}};
  return std::none_of(std::begin(kSpecial), std::end(kSpecial), [&](const auto& special) {
    return Within(address, special.prefix, special.bits);
  });
}

// Returns true for 2000::/3, except the ranges that contain IPv4 addresses or are for
// documentation.
bool IsPublicV6(const uint8_t* address) {
  static constexpr uint8_t kMapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (Within(address, kMapped, 96)) return IsPublicV4(address + 12);
  static constexpr uint8_t kGlobal[16] = {0x20};
  if (!Within(address, kGlobal, 3)) return false;
  static constexpr struct {
    uint8_t prefix[16];
    int bits;
  } kSpecial[] = {
      {{0x20, 0x01, 0x00}, 23},        // IETF protocols, among them Teredo
      {{0x20, 0x01, 0x0D, 0xB8}, 32},  // for documentation
      {{0x20, 0x02}, 16},              // 6to4
      {{0x3F, 0xFF, 0x00}, 20},        // for documentation
  };
  return std::none_of(std::begin(kSpecial), std::end(kSpecial), [&](const auto& special) {
    return Within(address, special.prefix, special.bits);
  });
}

}  // namespace

std::string HostEntryProblem(std::string_view entry) {
  const std::string text(entry);
  const Url url = Parse("https://" + text + "/");
  const bool plain = url != nullptr && PartOf(url, CURLUPART_PATH) == "/" &&
                     PartOf(url, CURLUPART_USER).empty() && PartOf(url, CURLUPART_QUERY).empty() &&
                     PartOf(url, CURLUPART_FRAGMENT).empty();
  const std::string port = plain ? PartOf(url, CURLUPART_PORT) : "";
  const std::string host = plain ? PartOf(url, CURLUPART_HOST) : "";
  if (plain && !host.empty() && text.find('*') == std::string::npos &&
      absl::EqualsIgnoreCase(text, port.empty() ? host : absl::StrCat(host, ":", port))) {
    return {};
  }
  return absl::StrCat("is '", text,
                      "'; must be HOST or HOST:PORT, such as hooks.example.com, without "
                      "wildcards");
}

std::string WebhookUrlProblem(const WebhookRules& rules, std::string_view text) {
  if (rules.hosts.empty()) return "must be empty, because this server sends no webhooks";
  if (text.size() > kMaxUrl) {
    return absl::StrCat("has ", text.size(), " bytes; must have at most ", kMaxUrl);
  }
  const std::string schemes = rules.allow_http ? "https:// or http://" : "https://";
  const bool printable =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > ' ' && c < 0x7F; });
  const Url url = printable ? Parse(std::string(text)) : Url(nullptr, curl_url_cleanup);
  const std::string scheme = url != nullptr ? PartOf(url, CURLUPART_SCHEME) : "";
  if (scheme != "https" && !(scheme == "http" && rules.allow_http)) {
    return absl::StrCat("must be a URL that begins with ", schemes);
  }
  if (!PartOf(url, CURLUPART_USER).empty() || !PartOf(url, CURLUPART_PASSWORD).empty()) {
    return "must have no user name and no password; the signature shows who sends the webhook";
  }
  if (!PartOf(url, CURLUPART_FRAGMENT).empty()) return "must have no fragment (what follows '#')";
  const std::string host = PartOf(url, CURLUPART_HOST);
  const std::string port = PartOf(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  if (IsAllowed(rules, host, port, port == (scheme == "https" ? "443" : "80"))) return {};
  return absl::StrCat("names the host '", host.substr(0, 100), "' and the port ", port,
                      "; the operator has allowed only ", absl::StrJoin(rules.hosts, ", "));
}

std::string WebhookHostOf(std::string_view text) {
  const Url url = Parse(std::string(text));
  return url != nullptr ? PartOf(url, CURLUPART_HOST) : "";
}

bool IsPublicAddress(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof(v4));
    return IsPublicV4(reinterpret_cast<const uint8_t*>(&v4.sin_addr));
  }
  if (address.sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof(v6));
    return IsPublicV6(reinterpret_cast<const uint8_t*>(&v6.sin6_addr));
  }
  return false;
}

}  // namespace wan::server
