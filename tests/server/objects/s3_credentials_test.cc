#include "server/objects/s3_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace wan::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class S3CredentialsTest : public testing::Test {
 protected:
  ~S3CredentialsTest() override { std::filesystem::remove(file_); }

  absl::StatusOr<S3Credentials> Find() {
    return FindCredentials([this](const char* name) { return variables_[name]; });
  }

  const std::string file_ = testing::TempDir() + "credentials_" + std::to_string(getpid());
  std::map<std::string, std::string> variables_ = {{"AWS_SHARED_CREDENTIALS_FILE", file_}};
};

TEST_F(S3CredentialsTest, VariablesComeFirst) {
  variables_["AWS_ACCESS_KEY_ID"] = "key";
  variables_["AWS_SECRET_ACCESS_KEY"] = "secret";
  variables_["AWS_SESSION_TOKEN"] = "token";
  const auto found = Find();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->access_key, "key");
  EXPECT_EQ(found->secret_key, "secret");
  EXPECT_EQ(found->session_token, "token");
}

TEST_F(S3CredentialsTest, TheFileIsReadEachTime) {
  std::ofstream(file_) << "[default]\naws_access_key_id=a\naws_secret_access_key = s\n\n"
                          "[other]\n# aws_access_key_id = no\naws_access_key_id = b\n"
                          "aws_secret_access_key = t=\naws_session_token = u\n";
  EXPECT_EQ(Find()->access_key, "a");
  EXPECT_EQ(Find()->session_token, "");
  variables_["AWS_PROFILE"] = "other";
  EXPECT_EQ(Find()->access_key, "b");
  EXPECT_EQ(Find()->secret_key, "t=");
  EXPECT_EQ(Find()->session_token, "u");
  std::ofstream(file_) << "[other]\naws_access_key_id=c\naws_secret_access_key=new\n";
  EXPECT_EQ(Find()->secret_key, "new");
}

TEST_F(S3CredentialsTest, SaysWhatIsMissingAndNoSecret) {
  EXPECT_THAT(std::string(Find().status().message()), HasSubstr("cannot be read"));
  std::ofstream(file_) << "[default]\naws_secret_access_key = very-secret\n";
  const std::string message(Find().status().message());
  EXPECT_THAT(message, HasSubstr("in [default]"));
  EXPECT_THAT(message, Not(HasSubstr("very-secret")));
  variables_["AWS_ACCESS_KEY_ID"] = "key";
  EXPECT_THAT(std::string(Find().status().message()), HasSubstr("AWS_SECRET_ACCESS_KEY is not"));
}

}  // namespace
}  // namespace wan::server
