#include "server/objects/s3_credentials.h"

#include <cstdlib>
#include <fstream>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

constexpr char kHelp[] =
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write both into ~/.aws/credentials";

std::string Or(std::string value, std::string_view otherwise) {
  return value.empty() ? std::string(otherwise) : value;
}

std::string Stripped(std::string_view text) {
  return std::string(absl::StripAsciiWhitespace({text.data(), text.size()}));
}

// Sets the member that a line "NAME = VALUE" is about.
void TakeLine(const std::string& line, S3Credentials& credentials) {
  const size_t equals = line.find('=');
  if (equals == std::string::npos) return;
  const std::string name = Stripped(std::string_view(line).substr(0, equals));
  const std::string value = Stripped(std::string_view(line).substr(equals + 1));
  if (name == "aws_access_key_id") credentials.access_key = value;
  if (name == "aws_secret_access_key") credentials.secret_key = value;
  if (name == "aws_session_token") credentials.session_token = value;
}

absl::StatusOr<S3Credentials> ReadFile(const std::string& path, const std::string& profile) {
  std::ifstream file(path);
  if (!file) {
    return absl::FailedPreconditionError(
        absl::StrCat("objects: there are no credentials: AWS_ACCESS_KEY_ID is not set and ", path,
                     " cannot be read; ", kHelp));
  }
  S3Credentials credentials;
  bool in_profile = false;
  for (std::string line; std::getline(file, line);) {
    const std::string text = Stripped(line);
    if (text.starts_with('[')) {
      in_profile = text == absl::StrCat("[", profile, "]");
    } else if (in_profile && !text.starts_with('#') && !text.starts_with(';')) {
      TakeLine(text, credentials);
    }
  }
  if (!credentials.access_key.empty() && !credentials.secret_key.empty()) return credentials;
  return absl::FailedPreconditionError(
      absl::StrCat("objects: ", path, " has no aws_access_key_id and aws_secret_access_key in [",
                   profile, "]; ", kHelp, ", or name another section with AWS_PROFILE"));
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
}

absl::StatusOr<S3Credentials> FindCredentials(const Environment& environment) {
  S3Credentials credentials{environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY"),
                            environment("AWS_SESSION_TOKEN")};
  if (credentials.access_key.empty()) {
    return ReadFile(
        Or(environment("AWS_SHARED_CREDENTIALS_FILE"), environment("HOME") + "/.aws/credentials"),
        Or(environment("AWS_PROFILE"), "default"));
  }
  if (!credentials.secret_key.empty()) return credentials;
  return absl::FailedPreconditionError(
      "objects: AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not; set both");
}

}  // namespace wan::server
