// Quotas over the wire: who is refused, with which details, and who may see what is used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "tests/server/auth/authenticated_server.h"
#include "tests/support/rpc_errors.h"

namespace wan::server {
namespace {

using support::DetailOf;
using support::ReasonOf;
using ::testing::HasSubstr;

class QuotasTest : public AuthenticatedServerTest {
 protected:
  void SetUp() override {
    alice_ = NewTokenOf("alice", Role::kUser);
    bob_ = NewTokenOf("bob", Role::kViewer);
    admin_ = NewTokenOf("root", Role::kAdmin);
  }

  // Another file in its place, so that no clock's resolution hides the change.
  void WriteQuotas(const std::string& text) {
    std::ofstream(QuotaFile() + ".new") << text;
    std::filesystem::rename(QuotaFile() + ".new", QuotaFile());
  }
  std::string QuotaFile() const { return folder_ + "/quotas"; }

  ServerConfig ConfigWithQuotas() const {
    ServerConfig config = AuthenticatedConfig();
    config.quotas = QuotaFile();
    return config;
  }

  grpc::Status Create(const std::string& token) {
    wan::v1::CreateJobRequest create;
    *create.mutable_request() = SmallRequest();
    wan::v1::Job job;
    return video_->CreateJob(As(token).get(), create, &job);
  }
  grpc::Status GetUsage(const std::string& token, const std::string& principal,
                        wan::v1::Usage* usage) {
    wan::v1::GetUsageRequest get;
    get.set_principal(principal);
    return video_->GetUsage(As(token).get(), get, usage);
  }
  grpc::Status List(const std::string& token) {
    wan::v1::ListJobsResponse jobs;
    return video_->ListJobs(As(token).get(), {}, &jobs);
  }

  std::string alice_;
  std::string bob_;
  std::string admin_;
};

TEST_F(QuotasTest, ARefusalSaysWhoseQuotaItIsAndWhatIsUsed) {
  WriteQuotas("alice: queued_jobs=0");
  StartServing(ConfigWithQuotas());
  const grpc::Status refused = Create(alice_);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(refused), "QUOTA_EXCEEDED");
  const auto failure = DetailOf<google::rpc::QuotaFailure>(refused);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->violations(0).subject(), "principal:alice");
  EXPECT_THAT(failure->violations(0).description(), HasSubstr("the quota queued_jobs is 0"));
  EXPECT_FALSE(DetailOf<google::rpc::RetryInfo>(refused).has_value());
  const auto info = DetailOf<google::rpc::ErrorInfo>(refused);
  EXPECT_EQ(info->metadata().at("quota"), "queued_jobs");
  EXPECT_EQ(info->metadata().at("used"), "0");
  EXPECT_EQ(info->metadata().at("limit"), "0");
  // The file is looked at again by the next call.
  WriteQuotas("alice: queued_jobs=1");
  EXPECT_TRUE(Create(alice_).ok());
}

TEST_F(QuotasTest, CallsASecondAtTheirLimitAndBeyond) {
  WriteQuotas("*: calls_per_second=3");
  StartServing(ConfigWithQuotas());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(List(alice_).ok()) << i;
  const grpc::Status refused = List(alice_);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(refused), "QUOTA_EXCEEDED");
  const auto retry = DetailOf<google::rpc::RetryInfo>(refused);
  ASSERT_TRUE(retry.has_value());
  EXPECT_EQ(retry->retry_delay().seconds(), 1);
  // Others have quotas of their own, and administrators may always call.
  EXPECT_TRUE(List(bob_).ok());
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(List(admin_).ok()) << i;
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(List(alice_).ok());
}

TEST_F(QuotasTest, OnlyAdministratorsSeeWhatOthersUse) {
  WriteQuotas("alice: queued_jobs=7");
  StartServing(ConfigWithQuotas());
  wan::v1::Usage usage;
  ASSERT_TRUE(GetUsage(alice_, "", &usage).ok());
  EXPECT_EQ(usage.principal(), "alice");
  EXPECT_EQ(usage.quota().queued_jobs(), 7);
  EXPECT_TRUE(GetUsage(alice_, "alice", &usage).ok());
  const grpc::Status refused = GetUsage(bob_, "alice", &usage);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ReasonOf(refused), "ROLE_REQUIRED");
  usage.Clear();
  ASSERT_TRUE(GetUsage(admin_, "alice", &usage).ok());
  EXPECT_EQ(usage.principal(), "alice");
}

TEST_F(QuotasTest, WithoutAuthenticationEverybodyIsOnePrincipal) {
  WriteQuotas("*: calls_per_second=1");
  ServerConfig config = DefaultConfig();
  config.quotas = QuotaFile();
  StartServing(config);
  EXPECT_TRUE(List("").ok());
  const grpc::Status refused = List("");
  EXPECT_EQ(ReasonOf(refused), "QUOTA_EXCEEDED");
  EXPECT_EQ(DetailOf<google::rpc::QuotaFailure>(refused)->violations(0).subject(), "everybody");
  EXPECT_TRUE(IsServing());  // health is public and counts for nobody
}

TEST_F(QuotasTest, AFileThatCannotBeUsedEndsTheStart) {
  WriteQuotas("alice: queued_jobs=many");
  Logger silent(LogLevel::kError, LogFormat::kJson, clock_, [](std::string_view) {});
  const auto server = Server::Start(ConfigWithQuotas(), {&engine_}, clock_, silent);
  EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("quotas: "));
}

}  // namespace
}  // namespace wan::server
