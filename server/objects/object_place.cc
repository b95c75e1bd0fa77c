#include "server/objects/object_place.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/objects/object_store.h"

namespace wan::server {
namespace {

constexpr char kS3[] = "s3://";
constexpr char kFile[] = "file://";

absl::Status Wrong(std::string_view value, std::string_view rule) {
  return absl::InvalidArgumentError(
      absl::StrCat("is '", std::string(value), "'; must be ", std::string(rule)));
}

bool IsBucket(std::string_view name) {
  return name.size() >= 3 && name.size() <= 63 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '.' || c == '-';
         });
}

absl::Status TakeOption(std::string_view text, std::string_view whole, S3Place& place) {
  const size_t equals = std::min(text.find('='), text.size());
  const std::string_view name = text.substr(0, equals);
  const std::string value(text.substr(std::min(equals + 1, text.size())));
  if (name == "endpoint") {
    absl::StatusOr<std::string> endpoint = ParseEndpoint(value);
    if (!endpoint.ok()) return endpoint.status();
    place.endpoint = *std::move(endpoint);
  } else if (name == "region" && !value.empty()) {
    place.region = value;
  } else if (name == "path_style" && (value == "true" || value == "false")) {
    place.style = value == "true" ? S3Place::Style::kPath : S3Place::Style::kHost;
  } else {
    return Wrong(whole,
                 "s3://BUCKET/PREFIX with endpoint=URL, region=NAME or path_style=true|false after "
                 "'?', joined by '&'");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ParseEndpoint(std::string_view url) {
  const size_t scheme = url.find("://");
  const std::string_view name = url.substr(0, std::min(scheme, url.size()));
  std::string host(scheme == std::string_view::npos ? "" : url.substr(scheme + 3));
  if (host.ends_with('/')) host.pop_back();
  if ((name != "http" && name != "https") || host.empty() ||
      host.find_first_of("/?#@ ") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has the endpoint '", std::string(url),
        "'; must be scheme, host and port, for example https://minio.example.com:9000"));
  }
  const std::string_view port = name == "http" ? ":80" : ":443";
  if (host.ends_with(port)) host.resize(host.size() - port.size());
  return absl::StrCat(std::string(name), "://", host);
}

absl::StatusOr<std::variant<S3Place, FolderPlace>> ParseObjectPlace(std::string_view text) {
  constexpr std::string_view kRule =
      "s3://BUCKET/PREFIX or file:///FOLDER, for example s3://videos/wan";
  if (text.starts_with(kFile)) {
    FolderPlace place{std::string(text.substr(sizeof(kFile) - 1))};
    if (!place.folder.starts_with('/') || place.folder.size() < 2) return Wrong(text, kRule);
    return place;
  }
  if (!text.starts_with(kS3)) return Wrong(text, kRule);
  std::string_view rest = text.substr(sizeof(kS3) - 1);
  const size_t question = rest.find('?');
  const std::string_view options =
      question == std::string_view::npos ? std::string_view() : rest.substr(question + 1);
  rest = rest.substr(0, question);
  const size_t slash = std::min(rest.find('/'), rest.size());
  S3Place place;
  place.bucket = rest.substr(0, slash);
  place.prefix = rest.substr(std::min(slash + 1, rest.size()));
  while (place.prefix.ends_with('/')) place.prefix.pop_back();
  if (!IsBucket(place.bucket)) return Wrong(text, kRule);
  if (!place.prefix.empty()) {
    if (!CheckObjectKey(place.prefix).ok()) return Wrong(text, kRule);
    place.prefix += '/';
  }
  if (options.empty()) return place;
  for (const absl::string_view option :
       absl::StrSplit(absl::string_view(options.data(), options.size()), '&')) {
    if (absl::Status taken = TakeOption({option.data(), option.size()}, text, place); !taken.ok()) {
      return taken;
    }
  }
  return place;
}

}  // namespace wan::server
