#include "server/tracing/collector.h"

#include <curl/curl.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace wan::server {
namespace {

constexpr absl::string_view kTracesPath = "/v1/traces";
constexpr size_t kMostHeaderFileBytes = size_t{64} << 10;
// Maximum number of bytes of an answer; an ExportTraceServiceResponse has only a few numbers and a
// message.
constexpr size_t kMostAnswerBytes = size_t{64} << 10;

// Whether the name is valid for a header field (a token of RFC 9110).
bool IsFieldName(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) ||
           absl::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) !=
               absl::string_view::npos;
  });
}

bool IsPrintable(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c >= ' ' && c < 0x7F; });
}

bool HasPart(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return false;
  curl_free(text);
  return true;
}

}  // namespace

absl::StatusOr<std::string> TracesUrl(const std::string& endpoint) {
  const auto wrong = [](absl::string_view right) {
    return absl::InvalidArgumentError(absl::StrCat("otlp_endpoint: ", right));
  };
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(curl_url(), curl_url_cleanup);
  const bool http = absl::StartsWithIgnoreCase(endpoint, "http://") ||
                    absl::StartsWithIgnoreCase(endpoint, "https://");
  const bool parsed = url != nullptr && http && IsPrintable(endpoint) &&
                      !absl::StrContains(endpoint, ' ') &&
                      curl_url_set(url.get(), CURLUPART_URL, endpoint.c_str(), 0) == CURLUE_OK;
  // The message must not repeat the URL, because it may contain a password.
  if (parsed && (HasPart(url.get(), CURLUPART_USER) || HasPart(url.get(), CURLUPART_PASSWORD))) {
    return wrong(
        "must have no user name and no password; write them into the file of otlp_headers");
  }
  if (!parsed) {
    return wrong(absl::StrCat("is '", endpoint,
                              "'; must be the URL of a collector that takes OTLP over HTTP, for "
                              "example http://127.0.0.1:4318"));
  }
  if (HasPart(url.get(), CURLUPART_QUERY) || HasPart(url.get(), CURLUPART_FRAGMENT)) {
    return wrong(absl::StrCat("is '", endpoint,
                              "'; must have nothing after its path, for example "
                              "http://127.0.0.1:4318/v1/traces"));
  }
  const absl::string_view base = absl::StripSuffix(endpoint, "/");
  return absl::EndsWith(base, kTracesPath) ? std::string(base) : absl::StrCat(base, kTracesPath);
}

absl::StatusOr<PostFields> ReadCollectorHeaders(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream.is_open()) {
    return absl::NotFoundError(absl::StrCat("otlp_headers: ", file, " cannot be read"));
  }
  PostFields fields;
  size_t bytes = 0;
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    bytes += line.size();
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty() || text.front() == '#') continue;
    const size_t colon = text.find(':');
    const absl::string_view name = text.substr(0, colon);
    const absl::string_view value = colon == absl::string_view::npos
                                        ? absl::string_view()
                                        : absl::StripLeadingAsciiWhitespace(text.substr(colon + 1));
    if (!IsFieldName(name) || value.empty() || !IsPrintable(value) ||
        bytes > kMostHeaderFileBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("otlp_headers: line ", number, " of ", file,
                       " must be NAME: VALUE, for example 'authorization: Bearer abc'"));
    }
    fields.emplace_back(std::string(name), std::string(value));
  }
  if (stream.bad()) {
    return absl::UnavailableError(absl::StrCat("otlp_headers: ", file, " cannot be read"));
  }
  return fields;
}

Collector::Collector(std::string url, PostFields headers, std::string ca_file)
    : url_(std::move(url)), fields_(std::move(headers)) {
  fields_.emplace_back("Content-Type", "application/json");
  // Allow every address, and http as well, because the operator chooses the collector.
  options_.allow_http = true;
  options_.ca_file = std::move(ca_file);
  options_.connect_time = std::chrono::seconds(5);
  options_.whole_time = std::chrono::seconds(10);
  options_.most_answer_bytes = kMostAnswerBytes;
}

absl::StatusOr<PostAnswer> Collector::Post(const std::string& request, std::stop_token stop) const {
  return server::Post(options_, url_, fields_, request, std::move(stop));
}

}  // namespace wan::server
