#include "server/outbound/http_client.h"

#include <curl/curl.h>
#include <unistd.h>

#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

constexpr size_t kMostHeaderBytes = size_t{64} << 10;

// The state that the callbacks of one request share.
struct Transfer {
  const OutboundOptions& options;
  const OutboundSink& sink;
  std::stop_token stop;
  CURL* curl = nullptr;
  OutboundAnswer answer = {};
  size_t header_bytes = 0;
  bool refused_address = false;
  bool ended_by_sink = false;
};

curl_socket_t OpenSocket(void* context, curlsocktype purpose, curl_sockaddr* address) {
  Transfer& transfer = *static_cast<Transfer*>(context);
  const auto& may_connect = transfer.options.may_connect;
  if (purpose != CURLSOCKTYPE_IPCXN || (may_connect != nullptr && !may_connect(address->addr))) {
    transfer.refused_address = true;
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// libcurl calls it with each line of the header; a result other than the line's size ends the
// transfer.
size_t TakeLine(char* bytes, size_t size, size_t count, void* context) {
  Transfer& transfer = *static_cast<Transfer*>(context);
  const std::string_view line(bytes, size * count);
  transfer.header_bytes += line.size();
  if (transfer.header_bytes > kMostHeaderBytes) return 0;
  if (line.starts_with("HTTP/")) transfer.answer.fields.clear();  // after 100 Continue
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    std::string value(line.substr(colon + 1));
    absl::StripAsciiWhitespace(&value);
    transfer.answer.fields.emplace_back(absl::AsciiStrToLower(std::string(line.substr(0, colon))),
                                        std::move(value));
  }
  return line.size();
}

// libcurl calls it with each piece of the answer's body; a result other than the piece's size ends
// the transfer.
size_t TakeBody(char* bytes, size_t size, size_t count, void* context) {
  Transfer& transfer = *static_cast<Transfer*>(context);
  const std::string_view piece(bytes, size * count);
  long status = 0;
  curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
  transfer.answer.status = static_cast<int>(status);
  transfer.answer.received += piece.size();
  if (transfer.sink(transfer.answer, piece)) return piece.size();
  transfer.ended_by_sink = true;
  return 0;
}

int LookForStop(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(context)->stop.stop_requested() ? 1 : 0;
}

void StartLibrary() {
  static const CURLcode once = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)once;
}

void SetMethod(CURL* curl, const OutboundRequest& request) {
  if (request.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  } else if (request.method == "POST" || request.method == "PUT") {
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
  }
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST,
                   request.method == "HEAD" ? nullptr : request.method.c_str());
}

void SetOptions(CURL* curl, const OutboundOptions& options) {
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, options.allow_http ? "https,http" : "https");
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  if (!options.ca_file.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, options.ca_file.c_str());
    curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
  }
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "wanserve");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(options.connect_time.count()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(options.whole_time.count()));
  if (options.stall_time.count() > 0) {
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.stall_time.count()));
  }
}

void SetCallbacks(CURL* curl, Transfer& transfer) {
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, &OpenSocket);
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &TakeLine);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &TakeBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &LookForStop);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
}

absl::Status ErrorOf(CURLcode code, const Transfer& transfer) {
  if (transfer.refused_address) {
    return absl::PermissionDeniedError("the host's address may not be connected to");
  }
  if (transfer.stop.stop_requested()) return absl::CancelledError("the request was stopped");
  if (transfer.header_bytes > kMostHeaderBytes) {
    return absl::UnavailableError(
        absl::StrCat("the answer's header has more than ", kMostHeaderBytes, " bytes"));
  }
  return absl::UnavailableError(curl_easy_strerror(code));
}

}  // namespace

std::string_view OutboundAnswer::Field(std::string_view name) const {
  for (const auto& [known, value] : fields) {
    if (known == name) return value;
  }
  return {};
}

HttpClient::~HttpClient() {
  for (void* const handle : idle_) curl_easy_cleanup(handle);
}

void* HttpClient::Take() {
  {
    absl::MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      void* const handle = idle_.back();
      idle_.pop_back();
      return handle;
    }
  }
  StartLibrary();
  return curl_easy_init();
}

void HttpClient::Return(void* handle) {
  curl_easy_reset(handle);  // keeps the connections
  absl::MutexLock lock(&mutex_);
  idle_.push_back(handle);
}

absl::StatusOr<OutboundAnswer> HttpClient::Send(const OutboundOptions& options,
                                                const OutboundRequest& request,
                                                const OutboundSink& sink, std::stop_token stop) {
  CURL* const curl = Take();
  if (curl == nullptr) return absl::InternalError("libcurl could not be started");
  const absl::Cleanup give_back = [this, curl] { Return(curl); };
  Transfer transfer{options, sink, std::move(stop), curl};
  curl_slist* list = curl_slist_append(nullptr, "Expect:");
  for (const auto& [name, value] : request.fields) {
    list = curl_slist_append(list, absl::StrCat(name, ": ", value).c_str());
  }
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> header(list,
                                                                           curl_slist_free_all);
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, header.get());
  SetMethod(curl, request);
  SetOptions(curl, options);
  SetCallbacks(curl, transfer);
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (code != CURLE_OK && !transfer.ended_by_sink) return ErrorOf(code, transfer);
  transfer.answer.status = static_cast<int>(status);
  curl_off_t seconds = 0;
  curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &seconds);
  if (seconds > 0) transfer.answer.retry_after = absl::Seconds(seconds);
  return std::move(transfer.answer);
}

}  // namespace wan::server
