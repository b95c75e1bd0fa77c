#include "server/objects/s3_answers.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace wan::server {
namespace {

constexpr int kPreconditionFailed = 412;

std::string Unescaped(std::string_view text) {
  return absl::StrReplaceAll(absl::string_view(text.data(), text.size()), {{"&lt;", "<"},
                                                                           {"&gt;", ">"},
                                                                           {"&quot;", "\""},
                                                                           {"&#34;", "\""},
                                                                           {"&apos;", "'"},
                                                                           {"&#39;", "'"},
                                                                           {"&amp;", "&"}});
}

// Returns the text after the position up to the end tag of `name`; nullopt if there is none.
// Sets the position to the end of the element.
std::optional<std::string_view> NextElement(std::string_view xml, std::string_view name,
                                            size_t& position) {
  const std::string begin = "<" + std::string(name);
  for (size_t at = xml.find(begin, position); at != std::string_view::npos;
       at = xml.find(begin, at + 1)) {
    const char after = at + begin.size() < xml.size() ? xml[at + begin.size()] : '\0';
    if (after != '>' && after != ' ') continue;  // another name
    const size_t open = xml.find('>', at);
    if (open == std::string_view::npos) break;
    const size_t close = xml.find("</" + std::string(name) + ">", open);
    if (close == std::string_view::npos) break;
    position = close;
    return xml.substr(open + 1, close - open - 1);
  }
  return std::nullopt;
}

// Says where the clocks of this machine and of the service differ.
std::string Skew(const OutboundAnswer& answer, absl::Time now) {
  absl::Time theirs;
  std::string error;
  const std::string date(answer.Field("date"));
  if (!absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", date, &theirs, &error)) return "";
  return absl::StrCat(" by ", absl::FormatDuration(absl::Trunc(now - theirs, absl::Seconds(1))));
}

std::string NameOf(const S3Target& target) {
  return absl::StrCat("s3://", std::string(target.bucket), target.key.empty() ? "" : "/",
                      std::string(target.key));
}

// Returns the error for a region other than the bucket's; nullopt if the answer is not about that.
std::optional<absl::Status> RegionError(const OutboundAnswer& answer, std::string_view code,
                                        std::string_view body, const S3Target& target) {
  std::string region(answer.Field("x-amz-bucket-region"));
  if (region.empty()) region = ElementText(body, "Region");
  const bool redirect = answer.status == 301 || answer.status == 307 || answer.status == 308;
  if (!redirect && code != "AuthorizationHeaderMalformed" && code != "PermanentRedirect") {
    return std::nullopt;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("objects: the bucket ", std::string(target.bucket), " is not in the region ",
                   std::string(target.region), "; set region=", region.empty() ? "REGION" : region,
                   " in the setting"));
}

std::optional<absl::Status> ForbiddenError(const OutboundAnswer& answer, std::string_view code,
                                           const S3Target& target, absl::Time now) {
  if (code == "RequestTimeTooSkewed") {
    return absl::FailedPreconditionError(absl::StrCat(
        "objects: this machine's clock differs from that of ", std::string(target.endpoint),
        Skew(answer, now), ", so that no request is accepted; set the clock right"));
  }
  if (code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch" || code == "ExpiredToken" ||
      code == "InvalidToken" || answer.status == 401) {
    return absl::UnauthenticatedError(
        absl::StrCat("objects: ", std::string(target.endpoint),
                     " does not accept the credentials (", code.empty() ? "401" : std::string(code),
                     "); renew AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the file that has "
                     "them"));
  }
  if (answer.status != 403 && code != "AccessDenied") return std::nullopt;
  return absl::PermissionDeniedError(absl::StrCat("objects: the credentials may not use ",
                                                  NameOf(target), "; grant them ",
                                                  std::string(target.right)));
}

}  // namespace

std::string ElementText(std::string_view xml, std::string_view name) {
  size_t position = 0;
  return Unescaped(NextElement(xml, name, position).value_or(""));
}

absl::StatusOr<S3Listing> ParseListing(std::string_view xml) {
  size_t position = 0;
  const auto whole = NextElement(xml, "ListBucketResult", position);
  if (!whole.has_value()) {
    return absl::InternalError("objects: the answer to a listing is not a ListBucketResult");
  }
  S3Listing listing;
  if (ElementText(*whole, "IsTruncated") == "true") {
    listing.next = ElementText(*whole, "NextContinuationToken");
    if (listing.next.empty()) {
      return absl::InternalError("objects: a listing is cut without a token for its next page");
    }
  }
  position = 0;
  while (const auto object = NextElement(*whole, "Contents", position)) {
    ObjectFacts facts{ElementText(*object, "Key"), 0};
    if (facts.key.empty() || !absl::SimpleAtoi(ElementText(*object, "Size"), &facts.size)) {
      return absl::InternalError("objects: a listing has an object without key or size");
    }
    listing.objects.push_back(std::move(facts));
  }
  return listing;
}

bool IsTransient(const OutboundAnswer& answer, std::string_view body) {
  if (answer.status == 429 || answer.status >= 500) return answer.status != 501;
  const std::string code = ElementText(body, "Code");
  // The service may also send these with the status 200 or 400.
  return code == "InternalError" || code == "SlowDown" || code == "RequestTimeout" ||
         code == "ServiceUnavailable";
}

absl::Status ErrorOf(const OutboundAnswer& answer, std::string_view body, const S3Target& target,
                     absl::Time now) {
  const std::string code = ElementText(body, "Code");
  if (IsTransient(answer, body)) {
    return absl::UnavailableError(absl::StrCat("objects: ", std::string(target.endpoint),
                                               " answers ", answer.status, code.empty() ? "" : " ",
                                               code));
  }
  if (code == "NoSuchBucket") {
    return absl::FailedPreconditionError(
        absl::StrCat("objects: the bucket ", std::string(target.bucket), " does not exist at ",
                     std::string(target.endpoint), "; create it, or change the setting"));
  }
  if (auto region = RegionError(answer, code, body, target)) return *std::move(region);
  if (auto forbidden = ForbiddenError(answer, code, target, now)) return *std::move(forbidden);
  if (answer.status == 404 || code == "NoSuchUpload") {
    return absl::NotFoundError(absl::StrCat("objects: ", NameOf(target), " does not exist"));
  }
  if (answer.status == 416) {
    return absl::OutOfRangeError(
        absl::StrCat("objects: the offset is past the end of ", NameOf(target)));
  }
  if (answer.status == kPreconditionFailed) {
    return absl::DataLossError(
        absl::StrCat("objects: ", NameOf(target), " was replaced while it was read"));
  }
  return absl::InternalError(
      absl::StrCat("objects: ", std::string(target.endpoint), " answers ", answer.status,
                   code.empty() ? std::string(" without an error of S3; check the endpoint")
                                : absl::StrCat(" ", code),
                   " for ", NameOf(target)));
}

}  // namespace wan::server
