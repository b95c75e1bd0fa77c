#include "server/auth/authenticator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "tests/server/auth/temporary_folder.h"

namespace wan::server {
namespace {

using ::testing::HasSubstr;

class AuthenticatorTest : public ::testing::Test {
 protected:
  std::string NewTokenOf(const std::string& principal, Role role) {
    const std::string token = NewToken();
    EXPECT_TRUE(AddCredential(file_, {{principal, role},
                                      absl::FromUnixSeconds(0),
                                      Credential::Kind::kToken,
                                      HashOfToken(token)})
                    .ok());
    return token;
  }

  std::unique_ptr<Authenticator> Open(AuthenticationOptions options) {
    options.on_problem = [this](const absl::Status& problem) { problems_.push_back(problem); };
    auto opened = Authenticator::Open(std::move(options));
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }

  static absl::StatusOr<Principal> WithToken(Authenticator& authenticator,
                                             const std::string& token) {
    const std::string value = "Bearer " + token;
    return authenticator.Identify({{value}, {}});
  }

  TemporaryFolder folder_;
  std::string file_ = folder_.Path("tokens");
  std::vector<absl::Status> problems_;
};

TEST_F(AuthenticatorTest, WithoutAnythingEverybodyIsTheNamelessAdministrator) {
  const auto authenticator = Open({});
  EXPECT_FALSE(authenticator->enabled());
  EXPECT_EQ(*authenticator->Identify({}), (Principal{"", Role::kAdmin}));
}

TEST_F(AuthenticatorTest, ATokenIsItsPrincipal) {
  const std::string alice = NewTokenOf("alice", Role::kUser);
  const std::string bob = NewTokenOf("bob", Role::kViewer);
  const auto authenticator = Open({file_});
  EXPECT_EQ(*WithToken(*authenticator, alice), (Principal{"alice", Role::kUser}));
  EXPECT_EQ(*WithToken(*authenticator, bob), (Principal{"bob", Role::kViewer}));
  const std::string lower = "bearer " + alice;
  EXPECT_TRUE(authenticator->Identify({{lower}, {}}).ok());
}

TEST_F(AuthenticatorTest, WhatIsNoTokenIsRefusedWithWhatWouldBeRight) {
  const std::string alice = NewTokenOf("alice", Role::kUser);
  const auto authenticator = Open({file_});
  const absl::Status missing = authenticator->Identify({}).status();
  EXPECT_TRUE(absl::IsUnauthenticated(missing));
  EXPECT_EQ(ReasonOf(missing), kReasonCredentialsMissing);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("authorization: Bearer TOKEN"));
  for (const std::string& value :
       {std::string(), std::string("Bearer"), std::string("Bearer "), alice, "Basic " + alice,
        "Bearer " + alice + " ", "Bearer " + HashOfToken(alice),
        "Bearer " + alice.substr(0, alice.size() - 1)}) {
    const absl::Status refused = authenticator->Identify({{value}, {}}).status();
    EXPECT_TRUE(absl::IsUnauthenticated(refused)) << value;
    EXPECT_EQ(ReasonOf(refused), kReasonCredentialsUnknown) << value;
    EXPECT_EQ(std::string(refused.message()).find(alice), std::string::npos);
  }
  const std::string right = "Bearer " + alice;
  EXPECT_TRUE(absl::IsUnauthenticated(authenticator->Identify({{right, right}, {}}).status()));
}

TEST_F(AuthenticatorTest, ARevokedTokenEndsAtOnceAndANewOneBegins) {
  const std::string alice = NewTokenOf("alice", Role::kUser);
  const auto authenticator = Open({file_});
  EXPECT_TRUE(WithToken(*authenticator, alice).ok());
  ASSERT_TRUE(RevokeCredentials(file_, "alice", "").ok());
  EXPECT_TRUE(absl::IsUnauthenticated(WithToken(*authenticator, alice).status()));
  const std::string bob = NewTokenOf("bob", Role::kAdmin);
  EXPECT_EQ(WithToken(*authenticator, bob)->name, "bob");
  EXPECT_TRUE(problems_.empty());
}

TEST_F(AuthenticatorTest, AChangedFileThatCannotBeUsedIsToldOnceAndChangesNothing) {
  const std::string alice = NewTokenOf("alice", Role::kUser);
  const auto authenticator = Open({file_});
  folder_.Write("tokens", "nonsense\n");
  EXPECT_TRUE(WithToken(*authenticator, alice).ok());
  EXPECT_TRUE(WithToken(*authenticator, alice).ok());
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_THAT(std::string(problems_[0].message()), HasSubstr(file_ + ":1: must be NAME ROLE"));
  std::filesystem::remove(file_);
  EXPECT_TRUE(WithToken(*authenticator, alice).ok());
  EXPECT_EQ(problems_.size(), 2u);
}

TEST_F(AuthenticatorTest, AFileThatCannotBeUsedIsNoStart) {
  const auto opened = Authenticator::Open({file_});
  EXPECT_TRUE(absl::IsNotFound(opened.status()));
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("auth_tokens: " + file_));
}

TEST_F(AuthenticatorTest, ACertificateIsAPrincipalByItsSubject) {
  ASSERT_TRUE(AddCredential(file_, {{"ops", Role::kAdmin},
                                    absl::FromUnixSeconds(0),
                                    Credential::Kind::kSubject,
                                    "CN=ops,O=Example"})
                  .ok());
  const auto named = Open({file_, true, std::nullopt});
  EXPECT_EQ(*named->Identify({{}, "CN=ops,O=Example"}), (Principal{"ops", Role::kAdmin}));
  const absl::Status unknown = named->Identify({{}, "CN=eve,O=Example"}).status();
  EXPECT_EQ(ReasonOf(unknown), kReasonCredentialsUnknown);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("CN=eve,O=Example"));
  const auto any = Open({file_, true, Role::kUser});
  EXPECT_EQ(*any->Identify({{}, "CN=eve,O=Example"}), (Principal{"CN=eve,O=Example", Role::kUser}));
  // Nobody could read back a job of such an owner.
  EXPECT_EQ(ReasonOf(any->Identify({{}, "CN=caf\xe9"}).status()), kReasonCredentialsUnknown);
}

TEST_F(AuthenticatorTest, AWrongTokenDoesNotFallBackToTheCertificate) {
  const std::string alice = NewTokenOf("alice", Role::kUser);
  const auto authenticator = Open({file_, true, Role::kAdmin});
  const std::string wrong = "Bearer " + NewToken();
  EXPECT_TRUE(absl::IsUnauthenticated(authenticator->Identify({{wrong}, "CN=eve"}).status()));
  const std::string right = "Bearer " + alice;
  EXPECT_EQ(authenticator->Identify({{right}, "CN=eve"})->name, "alice");
}

TEST_F(AuthenticatorTest, AReloadSaysWhetherTheFileCanBeUsed) {
  const std::string alice = NewTokenOf("alice", Role::kUser);
  const auto authenticator = Open({file_});
  const std::string bob = NewTokenOf("bob", Role::kViewer);
  EXPECT_TRUE(authenticator->Reload().ok());
  EXPECT_TRUE(WithToken(*authenticator, bob).ok());
  folder_.Write("tokens", "no token");
  EXPECT_THAT(std::string(authenticator->Reload().message()),
              HasSubstr("the principals stay as they were"));
  EXPECT_TRUE(WithToken(*authenticator, alice).ok());
  EXPECT_TRUE(problems_.empty()) << "who has asked for it is told";
  EXPECT_TRUE(Open({})->Reload().ok());
}

}  // namespace
}  // namespace wan::server
