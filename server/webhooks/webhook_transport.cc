#include "server/webhooks/webhook_transport.h"

#include <curl/curl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

// What the callbacks of one request share.
struct Attempt {
  const WebhookRules& rules;
  std::stop_token stop;
  bool refused_address = false;
};

curl_socket_t OpenSocket(void* context, curlsocktype purpose, curl_sockaddr* address) {
  Attempt& attempt = *static_cast<Attempt*>(context);
  if (purpose != CURLSOCKTYPE_IPCXN ||
      (!attempt.rules.allow_private && !IsPublicAddress(address->addr))) {
    attempt.refused_address = true;
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// Takes none of the answer's body: what came before it is all that counts.
size_t TakeNothing(char* /*bytes*/, size_t /*size*/, size_t /*count*/, void* /*context*/) {
  return 0;
}

int LookForStop(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Attempt*>(context)->stop.stop_requested() ? 1 : 0;
}

}  // namespace

CurlTransport::CurlTransport(const WebhookRules& rules, const TransportLimits& limits,
                             std::string ca_file)
    : rules_(rules), limits_(limits), ca_file_(std::move(ca_file)) {
  static const CURLcode once = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)once;
}

absl::StatusOr<int> CurlTransport::Post(const std::string& url, const WebhookMessage& message,
                                        std::stop_token stop) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> owned(curl_easy_init(),
                                                                  curl_easy_cleanup);
  if (owned == nullptr) return absl::InternalError("libcurl could not be started");
  CURL* const curl = owned.get();
  Attempt attempt{rules_, std::move(stop)};
  curl_slist* list = curl_slist_append(nullptr, "Expect:");
  for (const auto& [name, value] : message.fields) {
    list = curl_slist_append(list, absl::StrCat(name, ": ", value).c_str());
  }
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> fields(list,
                                                                           curl_slist_free_all);
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, rules_.allow_http ? "https,http" : "https");
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  if (!ca_file_.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file_.c_str());
    curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
  }
  curl_easy_setopt(curl, CURLOPT_POST, 1L);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, message.body.c_str());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(message.body.size()));
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, fields.get());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "wanserve");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(limits_.connect_time.count()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(limits_.whole_time.count()));
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, &OpenSocket);
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, &attempt);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &TakeNothing);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &LookForStop);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &attempt);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  // TakeNothing ends an answer that has a body.
  if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && status != 0)) {
    return static_cast<int>(status);
  }
  if (attempt.refused_address) {
    return absl::PermissionDeniedError(
        "the host's address belongs to a private network or to this machine, which "
        "webhook_private does not allow");
  }
  return absl::UnavailableError(curl_easy_strerror(code));
}

}  // namespace wan::server
