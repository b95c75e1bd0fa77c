#include "server/outbound/http_post.h"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

// The state that the callbacks of one request share.
struct Attempt {
  const PostOptions& options;
  std::stop_token stop;
  std::string body = {};  // the answer's body
  bool refused_address = false;
};

curl_socket_t OpenSocket(void* context, curlsocktype purpose, curl_sockaddr* address) {
  Attempt& attempt = *static_cast<Attempt*>(context);
  const auto& may_connect = attempt.options.may_connect;
  if (purpose != CURLSOCKTYPE_IPCXN || (may_connect != nullptr && !may_connect(address->addr))) {
    attempt.refused_address = true;
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// The function that libcurl calls with each piece of the answer's body. If it returns less than the
// size of the piece, libcurl ends the transfer.
size_t TakeBody(char* bytes, size_t size, size_t count, void* context) {
  Attempt& attempt = *static_cast<Attempt*>(context);
  const size_t taken =
      std::min(size * count, attempt.options.most_answer_bytes - attempt.body.size());
  attempt.body.append(bytes, taken);
  return taken;
}

int LookForStop(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Attempt*>(context)->stop.stop_requested() ? 1 : 0;
}

void StartLibrary() {
  static const CURLcode once = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)once;
}

}  // namespace

absl::StatusOr<PostAnswer> Post(const PostOptions& options, const std::string& url,
                                const PostFields& fields, const std::string& body,
                                std::stop_token stop) {
  StartLibrary();
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> owned(curl_easy_init(),
                                                                  curl_easy_cleanup);
  if (owned == nullptr) return absl::InternalError("libcurl could not be started");
  CURL* const curl = owned.get();
  Attempt attempt{options, std::move(stop)};
  curl_slist* list = curl_slist_append(nullptr, "Expect:");
  for (const auto& [name, value] : fields) {
    list = curl_slist_append(list, absl::StrCat(name, ": ", value).c_str());
  }
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> header(list,
                                                                           curl_slist_free_all);
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, options.allow_http ? "https,http" : "https");
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  if (!options.ca_file.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, options.ca_file.c_str());
    curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
  }
  curl_easy_setopt(curl, CURLOPT_POST, 1L);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, header.get());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "wanserve");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(options.connect_time.count()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(options.whole_time.count()));
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, &OpenSocket);
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, &attempt);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &TakeBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &attempt);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &LookForStop);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &attempt);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  // A write error means that TakeBody has ended an answer that reached the limit.
  if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && status != 0)) {
    PostAnswer answer{static_cast<int>(status), std::move(attempt.body), std::nullopt};
    curl_off_t seconds = 0;
    curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &seconds);
    if (seconds > 0) answer.retry_after = absl::Seconds(seconds);
    return answer;
  }
  if (attempt.refused_address) {
    return absl::PermissionDeniedError("the host's address may not be connected to");
  }
  return absl::UnavailableError(curl_easy_strerror(code));
}

}  // namespace wan::server
