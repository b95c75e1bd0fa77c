#include "server/auth/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fakes/fake_clock.h"
#include "tests/server/auth/temporary_folder.h"
#include "tests/support/certificates.h"

namespace wan::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class TlsFilesTest : public ::testing::Test {
 protected:
  void Write(const support::Certificate& certificate) {
    folder_.Write("cert.pem", certificate.certificate);
    folder_.Write("key.pem", certificate.key);
  }

  absl::Status Error() const { return ReadTlsFiles(paths_, clock_.Now()).status(); }
  std::string ErrorText() const { return std::string(Error().message()); }

  TemporaryFolder folder_;
  fakes::FakeClock clock_;
  support::CertificateAuthority authority_;
  TlsPaths paths_{folder_.Path("cert.pem"), folder_.Path("key.pem"), ""};
};

TEST_F(TlsFilesTest, WhatFitsIsRead) {
  const support::Certificate issued = authority_.Issue();
  Write(issued);
  paths_.client_ca = folder_.Write("ca.pem", authority_.certificate());
  const auto read = ReadTlsFiles(paths_, clock_.Now());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->certificate, issued.certificate);
  EXPECT_EQ(read->key, issued.key);
  EXPECT_EQ(read->client_ca, authority_.certificate());
  EXPECT_EQ(read->expiry, support::CertificateOptions().end);
}

TEST_F(TlsFilesTest, EveryErrorNamesSettingFileAndReason) {
  EXPECT_TRUE(absl::IsNotFound(Error()));
  EXPECT_THAT(ErrorText(),
              StartsWith("tls_cert: " + paths_.certificate + " cannot be read: No such file"));
  const support::Certificate issued = authority_.Issue();
  folder_.Write("cert.pem", "no PEM");
  EXPECT_THAT(ErrorText(), StartsWith("tls_cert: " + paths_.certificate + " has no certificate"));
  folder_.Write("cert.pem", issued.certificate);
  EXPECT_THAT(ErrorText(), StartsWith("tls_key: " + paths_.key + " cannot be read: No such file"));
  folder_.Write("key.pem", issued.certificate);
  EXPECT_THAT(ErrorText(), StartsWith("tls_key: " + paths_.key + " has no private key"));
  folder_.Write("key.pem", authority_.Issue().key);
  EXPECT_THAT(ErrorText(),
              StartsWith("tls_key: " + paths_.key + " is not the key of the certificate in " +
                         paths_.certificate));
  folder_.Write("key.pem", issued.key);
  EXPECT_TRUE(Error().ok());
  paths_.client_ca = folder_.Write("ca.pem", "");
  EXPECT_THAT(ErrorText(),
              StartsWith("tls_client_ca: " + paths_.client_ca + " has no certificate"));
  paths_.client_ca = folder_.Path("");
  EXPECT_THAT(ErrorText(), HasSubstr("must be a regular file"));
}

TEST_F(TlsFilesTest, ACertificateOfAnotherTimeIsNone) {
  support::CertificateOptions options;
  options.end = clock_.Now() - absl::Seconds(1);
  Write(authority_.Issue(options));
  EXPECT_TRUE(absl::IsFailedPrecondition(Error()));
  EXPECT_THAT(ErrorText(), HasSubstr(paths_.certificate + " expired at 20"));
  options.begin = clock_.Now() + absl::Seconds(1);
  options.end = options.begin + absl::Hours(1);
  Write(authority_.Issue(options));
  EXPECT_THAT(ErrorText(), HasSubstr(paths_.certificate + " is not valid before 20"));
}

TEST_F(TlsFilesTest, NewFilesCountOnceTheyFitEachOther) {
  const support::Certificate first = authority_.Issue();
  const support::Certificate second = authority_.Issue();
  Write(first);
  std::vector<std::string> problems;
  int changes = 0;
  auto files = TlsFiles::Open(
      paths_, clock_,
      [&](const absl::Status& problem) { problems.emplace_back(problem.message()); },
      [&](const TlsMaterial&) { ++changes; });
  ASSERT_TRUE(files.ok()) << files.status();
  const auto before = (*files)->Current();
  EXPECT_EQ((*files)->Current(), before);
  folder_.Write("cert.pem", second.certificate);
  EXPECT_EQ((*files)->Current(), before);
  EXPECT_EQ((*files)->Current(), before);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0], HasSubstr("tls_key: " + paths_.key + " is not the key"));
  folder_.Write("key.pem", second.key);
  EXPECT_EQ((*files)->Current()->certificate, second.certificate);
  EXPECT_EQ(changes, 1);
}

TEST_F(TlsFilesTest, AReloadSaysWhetherTheFilesCanBeUsed) {
  const support::Certificate first = authority_.Issue();
  const support::Certificate second = authority_.Issue();
  Write(first);
  int problems = 0;
  int changes = 0;
  auto files = TlsFiles::Open(
      paths_, clock_, [&](const absl::Status&) { ++problems; },
      [&](const TlsMaterial&) { ++changes; });
  ASSERT_TRUE(files.ok()) << files.status();
  folder_.Write("cert.pem", second.certificate);
  EXPECT_THAT(std::string((*files)->Reload().message()), HasSubstr("is not the key"));
  EXPECT_EQ((*files)->Current()->certificate, first.certificate);
  EXPECT_EQ(problems, 0) << "who has asked for it is told";
  folder_.Write("key.pem", second.key);
  EXPECT_TRUE((*files)->Reload().ok());
  EXPECT_EQ((*files)->Current()->certificate, second.certificate);
  EXPECT_EQ(changes, 1);
}

}  // namespace
}  // namespace wan::server
