#include "server/webhooks/webhook_message.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/rpc/error_details.pb.h"
#include "server/conversion/convert.h"
#include "server/conversion/names.h"

namespace wan::server {
namespace {

using nlohmann::json;

constexpr size_t kLeastSecret = 24;
constexpr size_t kMostSecret = 64;
constexpr std::streamsize kMostFileBytes = 1024;

std::string_view StateOf(wan::v1::JobState state) {
  switch (state) {
    case wan::v1::JOB_STATE_COMPLETED:
      return "completed";
    case wan::v1::JOB_STATE_FAILED:
      return "failed";
    default:
      return "cancelled";
  }
}

json TimeOf(bool present, const google::protobuf::Timestamp& time) {
  if (!present) return nullptr;
  return absl::FormatTime(absl::RFC3339_full, ToTime(time), absl::UTCTimeZone());
}

json ErrorOf(const wan::v1::Job& job) {
  if (!job.has_error()) return nullptr;
  std::string reason;
  for (const auto& detail : job.error().details()) {
    google::rpc::ErrorInfo info;
    if (detail.UnpackTo(&info)) reason = info.reason();
  }
  const auto code = static_cast<absl::StatusCode>(job.error().code());
  return {{"code", absl::StatusCodeToString(code)}, {"reason", reason}};
}

json ArtifactsOf(const wan::v1::Job& job) {
  json artifacts = json::array();
  for (const wan::v1::Artifact& artifact : job.artifacts()) {
    artifacts.push_back({{"name", artifact.name()},
                         {"kind", wan::v1::OutputKind_Name(artifact.kind())},
                         {"size_bytes", artifact.size_bytes()},
                         {"sha256", artifact.sha256()},
                         {"content_type", artifact.content_type()}});
  }
  return artifacts;
}

std::string HmacBase64(std::string_view secret, std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &size);
  return absl::Base64Escape(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace

WebhookMessage MessageOf(const wan::v1::Job& job, std::string_view secret, absl::Time now) {
  // A job ends only once, so its name identifies the report.
  const std::string id = absl::StrCat("msg_", std::string(JobIdOf(job.name())));
  const std::string_view state = StateOf(job.state());
  json labels = json::object();
  for (const auto& [key, value] : job.request().labels()) labels[key] = value;
  const json body = {{"id", id},
                     {"type", absl::StrCat("job.", std::string(state))},
                     {"timestamp", TimeOf(true, job.end_time())},
                     {"data",
                      {{"job", job.name()},
                       {"state", state},
                       {"model", job.request().model()},
                       {"labels", std::move(labels)},
                       {"attempt", job.attempt()},
                       {"create_time", TimeOf(job.has_create_time(), job.create_time())},
                       {"start_time", TimeOf(job.has_start_time(), job.start_time())},
                       {"end_time", TimeOf(job.has_end_time(), job.end_time())},
                       {"error", ErrorOf(job)},
                       {"artifacts", ArtifactsOf(job)}}}};
  WebhookMessage message;
  message.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  const std::string time = absl::StrCat(absl::ToUnixSeconds(now));
  message.fields = {{"content-type", "application/json"},
                    {"webhook-id", id},
                    {"webhook-timestamp", time},
                    {"webhook-signature",
                     "v1," + HmacBase64(secret, absl::StrCat(id, ".", time, ".", message.body))}};
  return message;
}

absl::StatusOr<std::string> ReadWebhookSecret(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(kMostFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream.is_open() || stream.bad()) {
    return absl::NotFoundError(absl::StrCat("webhook_secret: ", file, " cannot be read"));
  }
  text.resize(static_cast<size_t>(stream.gcount()));
  absl::string_view encoded = absl::StripAsciiWhitespace(text);
  std::string secret;
  if (!absl::ConsumePrefix(&encoded, "whsec_") || !absl::Base64Unescape(encoded, &secret) ||
      secret.size() < kLeastSecret || secret.size() > kMostSecret) {
    return absl::InvalidArgumentError(absl::StrCat(
        "webhook_secret: ", file, " must hold 'whsec_' and the base64 of ", kLeastSecret, " to ",
        kMostSecret, " random bytes, and nothing else; openssl rand -base64 32 makes them"));
  }
  return secret;
}

}  // namespace wan::server
