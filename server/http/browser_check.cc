#include "server/http/browser_check.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/config/host_port.h"

namespace wan::server {
namespace {

// Whether `origin` is the origin of pages that come from `host`. A proxy may have ended TLS, so the
// origin may have https although the server speaks http.
bool IsOrigin(std::string_view origin, const std::string& host) {
  return !host.empty() &&
         (origin == absl::StrCat("http://", host) || origin == absl::StrCat("https://", host));
}

bool IsAddress(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

}  // namespace

absl::Status CheckBrowser(const HttpHead& head, const BrowserRules& rules) {
  // A request with a token may pass; the gatekeeper refuses one without token and certificate.
  if (rules.authenticates &&
      (head.certificate_subject.empty() || !head.All("authorization").empty())) {
    return absl::OkStatus();
  }
  // For resources that a page only shows, for example with <video>, browsers send Sec-Fetch-Site
  // but not Origin.
  const std::string_view site = head.First("sec-fetch-site");
  const std::vector<std::string_view> origins = head.All("origin");
  const bool listed =
      !rules.authenticates && origins.size() == 1 &&
      std::find(rules.origins.begin(), rules.origins.end(), origins.front()) != rules.origins.end();
  if (head.path != "/" && !listed && (site == "cross-site" || site == "same-site")) {
    return absl::PermissionDeniedError(
        "a web page of another address asked for this; only the server's own page may, without a "
        "token");
  }
  std::string host = absl::AsciiStrToLower(std::string(head.First("host")));
  const bool own_page = rules.page && origins.size() == 1 && IsOrigin(origins.front(), host);
  if (!origins.empty() && !own_page && !listed) {
    return absl::PermissionDeniedError(
        rules.authenticates
            ? "a web page of another address cannot use the browser's certificate; it needs a token"
            : "a server that authenticates nobody answers no web page of another address: any page "
              "could use it then; http_origins lists those that may");
  }
  if (rules.authenticates || (!rules.loopback && !own_page)) return absl::OkStatus();
  if (host.rfind(':') == std::string::npos || host.ends_with(']')) host += ":80";
  const absl::StatusOr<HostPort> parsed = ParseHostPort(host);
  if (parsed.ok() && IsLoopback(*parsed)) return absl::OkStatus();
  if (rules.loopback) {
    return absl::PermissionDeniedError(
        "the request's Host must be localhost or an address of this machine, because the server "
        "authenticates nobody");
  }
  if (parsed.ok() && IsAddress(parsed->host)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "the page's URL must have localhost or an address such as 192.0.2.7 for its host, because "
      "the server authenticates nobody");
}

}  // namespace wan::server
