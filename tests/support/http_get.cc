#include "tests/support/http_get.h"

#include <httplib.h>

#include "absl/strings/str_cat.h"

namespace wan::support {

absl::StatusOr<HttpResponse> HttpGet(const std::string& host, int port, std::string_view path) {
  httplib::Client client(host, port);
  const httplib::Result result = client.Get(std::string(path));
  if (!result) {
    return absl::UnavailableError(absl::StrCat("no answer from ", host, " port ", port, ": ",
                                               httplib::to_string(result.error())));
  }
  return HttpResponse{result->status, result->get_header_value("Content-Type"), result->body};
}

}  // namespace wan::support
