#include "tests/support/http_get.h"

#include <httplib.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace wan::support {
namespace {

absl::StatusOr<HttpResponse> ResponseOf(const httplib::Result& result, const std::string& host,
                                        int port) {
  if (!result) {
    return absl::UnavailableError(absl::StrCat("no answer from ", host, " port ", port, ": ",
                                               httplib::to_string(result.error())));
  }
  HttpResponse response{result->status, result->get_header_value("Content-Type"), result->body, {}};
  for (const auto& [name, value] : result->headers) {
    response.fields[absl::AsciiStrToLower(name)] = value;
  }
  return response;
}

}  // namespace

absl::StatusOr<HttpResponse> HttpGet(const std::string& host, int port, std::string_view path) {
  httplib::Client client(host, port);
  return ResponseOf(client.Get(std::string(path)), host, port);
}

absl::StatusOr<HttpResponse> AskHttp(int port, const HttpRequest& request) {
  const std::string host = "127.0.0.1";
  httplib::Client client(host, port);
  httplib::Request sent;
  sent.method = request.method;
  sent.path = request.path;
  sent.body = request.body;
  for (const auto& [name, value] : request.fields) sent.headers.emplace(name, value);
  return ResponseOf(client.send(sent), host, port);
}

}  // namespace wan::support
