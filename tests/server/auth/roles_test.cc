// Every method against every role, over the wire.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/auth/method_rules.h"
#include "tests/server/auth/authenticated_server.h"
#include "tests/support/rpc_errors.h"
#include "wan/v1/model_management.grpc.pb.h"

namespace wan::server {
namespace {

using support::DetailOf;
using support::ReasonOf;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RolesTest : public AuthenticatedServerTest {
 protected:
  void SetUp() override {
    for (const Role role : {Role::kViewer, Role::kUser, Role::kAdmin}) {
      tokens_[role] = NewTokenOf(absl::StrCat("a-", std::string(NameOf(role))), role);
    }
  }

  std::map<Role, std::string> tokens_;
};

TEST_F(RolesTest, EveryMethodAgainstEveryRole) {
  ServerConfig config = AuthenticatedConfig();
  config.health_access = ServiceAccess::kAuthenticated;
  Start(config);
  for (const MethodRule& rule : MethodRules()) {
    const std::string path(rule.path);
    if (!path.starts_with('/')) continue;  // HTTP: tests/server/http
    const grpc::Status nobody = CallWithRubbish(channel_, path, "");
    EXPECT_EQ(nobody.error_code(), grpc::StatusCode::UNAUTHENTICATED) << path;
    EXPECT_EQ(ReasonOf(nobody), "CREDENTIALS_MISSING") << path;
    const grpc::Status stranger = CallWithRubbish(channel_, path, NewToken());
    EXPECT_EQ(stranger.error_code(), grpc::StatusCode::UNAUTHENTICATED) << path;
    EXPECT_EQ(ReasonOf(stranger), "CREDENTIALS_UNKNOWN") << path;
    for (const auto& [role, token] : tokens_) {
      const grpc::Status status = CallWithRubbish(channel_, path, token);
      if (role < rule.least) {
        EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << path;
        EXPECT_EQ(ReasonOf(status), "ROLE_REQUIRED") << path;
        const auto info = DetailOf<google::rpc::ErrorInfo>(status);
        ASSERT_TRUE(info.has_value());
        EXPECT_EQ(info->metadata().at("required_role"), NameOf(rule.least)) << path;
        EXPECT_EQ(info->metadata().at("role"), NameOf(role)) << path;
      } else {
        EXPECT_NE(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << path;
        EXPECT_NE(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << path;
        EXPECT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << path;
      }
    }
  }
}

TEST_F(RolesTest, HealthAndReflectionAreSettings) {
  constexpr char kHealth[] = "/grpc.health.v1.Health/Check";
  constexpr char kReflection[] = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
  constexpr auto kRefused = grpc::StatusCode::UNAUTHENTICATED;
  constexpr auto kGone = grpc::StatusCode::UNIMPLEMENTED;
  ServerConfig config = AuthenticatedConfig();
  Start(config);
  EXPECT_NE(CallWithRubbish(channel_, kHealth, "").error_code(), kRefused);
  EXPECT_EQ(CallWithRubbish(channel_, kReflection, "").error_code(), kRefused);
  StopServer();
  config.health_access = ServiceAccess::kAuthenticated;
  config.reflection_access = ServiceAccess::kPublic;
  Start(config);
  EXPECT_EQ(CallWithRubbish(channel_, kHealth, "").error_code(), kRefused);
  EXPECT_NE(CallWithRubbish(channel_, kReflection, "").error_code(), kRefused);
  StopServer();
  config.health_access = ServiceAccess::kOff;
  config.reflection_access = ServiceAccess::kOff;
  Start(config);
  EXPECT_EQ(CallWithRubbish(channel_, kHealth, tokens_[Role::kAdmin]).error_code(), kGone);
  EXPECT_EQ(CallWithRubbish(channel_, kReflection, tokens_[Role::kAdmin]).error_code(), kGone);
}

TEST_F(RolesTest, TheAddressForAdministratorsAloneHasModelManagementAndAdministration) {
  ServerConfig config = AuthenticatedConfig();
  config.admin_listen = HostPort{"127.0.0.1", 0};
  Start(config);
  ASSERT_TRUE(server_->admin_address().has_value());
  const auto admin =
      grpc::CreateChannel(ToString(*server_->admin_address()), grpc::InsecureChannelCredentials());
  const std::string& token = tokens_[Role::kAdmin];
  constexpr char kListModels[] = "/wan.v1.ModelManagement/ListModels";
  constexpr char kGetJob[] = "/wan.v1.VideoGeneration/GetJob";
  EXPECT_EQ(CallWithRubbish(channel_, kListModels, token).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(CallWithRubbish(admin, kListModels, token).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(CallWithRubbish(admin, kListModels, tokens_[Role::kUser]).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(CallWithRubbish(admin, kGetJob, token).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  constexpr char kDrain[] = "/wan.v1.Administration/Drain";
  EXPECT_EQ(CallWithRubbish(channel_, kDrain, token).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(CallWithRubbish(admin, kDrain, token).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(CallWithRubbish(admin, kDrain, tokens_[Role::kUser]).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(RolesTest, TheAuditLogSaysWhoDidWhatAndNothingThatWasSaidInConfidence) {
  constexpr char kSecret[] = "a prompt that nobody shall read";
  StartServing(AuthenticatedConfig());
  const std::string& user = tokens_[Role::kUser];
  wan::v1::CreateJobRequest create;
  *create.mutable_request() = SmallRequest();
  create.mutable_request()->set_prompt(kSecret);
  (*create.mutable_request()->mutable_labels())["for"] = kSecret;
  wan::v1::Job job;
  ASSERT_TRUE(video_->CreateJob(As(user).get(), create, &job).ok());
  const auto models = wan::v1::ModelManagement::NewStub(channel_);
  wan::v1::UnloadModelRequest unload;
  unload.set_name("m");
  wan::v1::Model model;
  EXPECT_FALSE(models->UnloadModel(As(user).get(), unload, &model).ok());
  EXPECT_FALSE(video_->CreateJob(As("wan_wrong").get(), create, &job).ok());
  const std::string log = Log();
  EXPECT_THAT(log, HasSubstr(absl::StrCat(R"("message":"audit","principal":"a-user","role":"user",)"
                                          R"("method":"/wan.v1.VideoGeneration/CreateJob")")));
  EXPECT_THAT(log, HasSubstr(absl::StrCat(R"("resource":")", job.name(), R"(","code":"OK")")));
  EXPECT_THAT(log, HasSubstr(R"("code":"PERMISSION_DENIED","reason":"ROLE_REQUIRED")"));
  EXPECT_THAT(log, HasSubstr(R"("code":"UNAUTHENTICATED","reason":"CREDENTIALS_UNKNOWN")"));
  EXPECT_THAT(log, HasSubstr(R"("peer":"ipv4:127.0.0.1:)"));
  EXPECT_THAT(log, AllOf(Not(HasSubstr(kSecret)), Not(HasSubstr(user)), Not(HasSubstr("wan_"))));
}

TEST_F(RolesTest, TheAuditLogMayBeAFileThatIsMovedAway) {
  ServerConfig config = AuthenticatedConfig();
  config.audit_log = folder_ + "/audit";
  Start(config);
  const auto refused = [&] {
    return CallWithRubbish(channel_, "/wan.v1.VideoGeneration/GetJob", "").error_code();
  };
  const auto read = [](const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  // The entry is written while the caller goes on.
  const auto await_entry = [&] {
    while (read(config.audit_log).find("VideoGeneration/GetJob") == std::string::npos) {
    }
  };
  EXPECT_EQ(refused(), grpc::StatusCode::UNAUTHENTICATED);
  await_entry();
  EXPECT_THAT(Log(), Not(HasSubstr("\"audit\"")));
  std::filesystem::rename(config.audit_log, config.audit_log + ".1");
  EXPECT_EQ(refused(), grpc::StatusCode::UNAUTHENTICATED);
  await_entry();
}

TEST_F(RolesTest, StrangersCannotFillTheAuditLog) {
  Start(AuthenticatedConfig());
  for (int i = 0; i < 150; ++i) CallWithRubbish(channel_, "/wan.v1.VideoGeneration/GetJob", "");
  clock_.Advance(absl::Seconds(11));
  CallWithRubbish(channel_, "/wan.v1.VideoGeneration/GetJob", "");
  const std::string log = Log();
  int entries = 0;
  for (size_t at = log.find("\"audit\""); at != std::string::npos;
       at = log.find("\"audit\"", at + 1)) {
    ++entries;
  }
  EXPECT_EQ(entries, 101);
  EXPECT_THAT(log, HasSubstr(R"("audit entries of unknown callers left out","count":50)"));
}

TEST_F(RolesTest, AnInsecureServerSaysSoAtTheStartAndEveryHour) {
  ServerConfig config = DefaultConfig();
  config.insecure = true;
  Start(config);
  const auto warnings = [this] {
    const std::string log = Log();
    int count = 0;
    for (size_t at = log.find("insecure: "); at != std::string::npos;
         at = log.find("insecure: ", at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(warnings(), 1);
  clock_.Advance(absl::Minutes(59));
  EXPECT_EQ(warnings(), 1);
  for (int hours = 1; hours <= 3; ++hours) {
    clock_.Advance(absl::Hours(1));
    while (warnings() < 1 + hours) std::this_thread::yield();
    EXPECT_EQ(warnings(), 1 + hours);
  }
}

}  // namespace
}  // namespace wan::server
