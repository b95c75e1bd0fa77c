#include "server/auth/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/auth/temporary_folder.h"

namespace wan::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

Credential TokenOf(const std::string& principal, Role role, const std::string& token) {
  return {{principal, role},
          absl::FromUnixSeconds(1'700'000'000),
          Credential::Kind::kToken,
          HashOfToken(token)};
}

TEST(TokenFileTest, ATokenIs256RandomBitsAndNeverTheSame) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) {
    const std::string token = NewToken();
    EXPECT_THAT(token, MatchesRegex("wan_[0-9a-f]{64}"));
    EXPECT_TRUE(tokens.insert(token).second);
  }
}

TEST(TokenFileTest, TheHashIsSha256) {
  EXPECT_EQ(HashOfToken("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(TokenFileTest, WhatIsWrittenIsReadAgain) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("tokens");
  std::vector<Credential> credentials;
  credentials.push_back(TokenOf("alice", Role::kUser, "a"));
  credentials.push_back(TokenOf("bob@example.com", Role::kViewer, "b"));
  credentials.push_back(TokenOf("ops", Role::kAdmin, ""));
  credentials.back().kind = Credential::Kind::kSubject;
  credentials.back().value = "CN=ops of the night,O=Example";
  ASSERT_TRUE(WriteTokenFile(path, credentials).ok());
  const auto read = ReadTokenFile(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, credentials);
  struct stat facts = {};
  ASSERT_EQ(stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

TEST(TokenFileTest, EveryWrongLineIsNamed) {
  const auto parsed = ParseTokenFile(
      "# a comment\n\nalice user\nbob king 2026-11-22T08:00:00Z subject:CN=b\n"
      "carol user yesterday subject:CN=c\ndave user 2026-11-22T08:00:00Z sha256:ABC\n"
      "eve user 2026-11-22T08:00:00Z md5:0\na/b user 2026-11-22T08:00:00Z subject:CN=f\n",
      "/etc/tokens");
  ASSERT_TRUE(absl::IsInvalidArgument(parsed.status()));
  EXPECT_THAT(std::string(parsed.status().message()),
              AllOf(HasSubstr("/etc/tokens:3: must be NAME ROLE CREATED"),
                    HasSubstr("/etc/tokens:4: the role must be viewer, user or admin"),
                    HasSubstr("/etc/tokens:5: the third column must be a time"),
                    HasSubstr("/etc/tokens:6: sha256: must be followed by 64"),
                    HasSubstr("/etc/tokens:7: the fourth column must begin with"),
                    HasSubstr("/etc/tokens:8: the principal's name must be")));
}

TEST(TokenFileTest, AFileThatEverybodyMayWriteIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("tokens", "");
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  const auto read = ReadTokenFile(path);
  EXPECT_TRUE(absl::IsFailedPrecondition(read.status())) << read.status();
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("writable by everybody"));
}

TEST(TokenFileTest, AFileThatIsNotUtf8IsRefused) {
  const TemporaryFolder folder;
  const auto read =
      ReadTokenFile(folder.Write("tokens", "ann user 2026-11-22T08:00:00Z subject:CN=caf\xe9\n"));
  EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("tokens is not UTF-8"));
}

TEST(TokenFileTest, WhatIsNoFileIsAnErrorThatNamesIt) {
  const TemporaryFolder folder;
  EXPECT_TRUE(absl::IsNotFound(ReadTokenFile(folder.Path("none")).status()));
  EXPECT_THAT(std::string(ReadTokenFile(folder.Path("none")).status().message()),
              HasSubstr(folder.Path("none") + " cannot be read: No such file"));
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadTokenFile(folder.Path("")).status()));
  ASSERT_EQ(mkfifo(folder.Path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadTokenFile(folder.Path("pipe")).status()));
}

TEST(TokenFileTest, RevokingRemovesAllOfAPrincipalOrOne) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("tokens");
  for (const char* const token : {"1", "2"}) {
    ASSERT_TRUE(AddCredential(path, TokenOf("alice", Role::kUser, token)).ok());
  }
  ASSERT_TRUE(AddCredential(path, TokenOf("bob", Role::kUser, "3")).ok());
  EXPECT_TRUE(absl::IsNotFound(RevokeCredentials(path, "carol", "").status()));
  const Credential second = TokenOf("alice", Role::kUser, "2");
  EXPECT_EQ(*RevokeCredentials(path, "alice", IdOf(second)), 1);
  EXPECT_EQ(*RevokeCredentials(path, "alice", ""), 1);
  EXPECT_EQ(ReadTokenFile(path)->size(), 1u);
}

TEST(TokenFileTest, TwoThatChangeTheFileLoseNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("tokens");
  constexpr int kEach = 20;
  std::vector<std::thread> writers;
  for (const char* const name : {"a", "b", "c", "d"}) {
    writers.emplace_back([&path, name] {
      for (int i = 0; i < kEach; ++i) {
        EXPECT_TRUE(AddCredential(path, TokenOf(name, Role::kUser, absl::StrCat(name, i))).ok());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(ReadTokenFile(path)->size(), 4u * kEach);
}

}  // namespace
}  // namespace wan::server
