// What LoadModel reads, and what remains of loads that failed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/auth/authenticated_server.h"
#include "tests/support/http_get.h"
#include "tests/support/rpc_errors.h"
#include "wan/v1/model_management.grpc.pb.h"

namespace wan::server {
namespace {

using support::DetailOf;
using support::ReasonOf;
using support::ViolatedFields;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class LoadingTest : public AuthenticatedServerTest {
 protected:
  LoadingTest() { std::filesystem::create_directories(root_); }

  void StartWithRoot() {
    ServerConfig config = DefaultConfig();
    config.model_roots = {root_};
    StartModels(config);
  }

  void StartModels(const ServerConfig& config) {
    StartServing(config);
    models_ = wan::v1::ModelManagement::NewStub(channel_);
  }

  grpc::Status Load(const std::string& name, const std::string& path, const std::string& lora = "",
                    const std::string& token = "") {
    wan::v1::LoadModelRequest request;
    request.set_name(name);
    request.set_path(path);
    request.set_wait(true);
    if (!lora.empty()) {
      request.add_loras()->set_name("l");
      request.mutable_loras(0)->set_path(lora);
    }
    wan::v1::Model model;
    return models_->LoadModel(As(token).get(), request, &model);
  }

  std::vector<std::string> Listed() {
    wan::v1::ListModelsRequest request;
    request.set_page_size(1000);
    wan::v1::ListModelsResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(models_->ListModels(&context, request, &response).ok());
    std::vector<std::string> names;
    for (const wan::v1::Model& model : response.models()) names.push_back(model.name());
    return names;
  }

  // What is said of a path.
  static std::string ViolationOf(const grpc::Status& status) {
    const auto bad = DetailOf<google::rpc::BadRequest>(status);
    return bad.has_value() ? bad->field_violations(0).description() : "none";
  }

  const std::string root_ = folder_ + "/models";
  std::unique_ptr<wan::v1::ModelManagement::Stub> models_;
};

TEST_F(LoadingTest, APathOutsideTheRootsTellsNothing) {
  StartWithRoot();
  const grpc::Status file = Load("x", "/etc/passwd");
  EXPECT_EQ(file.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(ViolatedFields(file), ElementsAre("path"));
  // A file, a folder, nothing and a link are all the same.
  for (const char* const path : {"/etc", "/nonexistent", "/proc/self/exe", "/dev/zero"}) {
    EXPECT_EQ(ViolationOf(Load("x", path)), ViolationOf(file)) << path;
  }
  const grpc::Status lora = Load("x", "synthetic:ti2v-5b", "/etc/passwd");
  EXPECT_THAT(ViolatedFields(lora), ElementsAre("loras[0].path"));
  EXPECT_EQ(ViolationOf(lora), ViolationOf(file));
  EXPECT_THAT(Listed(), ElementsAre("models/m"));
}

TEST_F(LoadingTest, APathIsReadWholeOrNotAtAll) {
  StartWithRoot();
  std::string path = root_ + "/m";
  path.push_back('\0');
  EXPECT_THAT(ViolatedFields(Load("x", path + "more")), ElementsAre("path"));
  EXPECT_THAT(ViolatedFields(Load("x", "synthetic:ti2v-5b", path)), ElementsAre("loras[0].path"));
  EXPECT_THAT(ViolatedFields(Load("x", root_ + "/" + std::string(5000, 'a'))), ElementsAre("path"));
}

TEST_F(LoadingTest, LoadsThatFailAreForgotten) {
  StartWithRoot();
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(Load(absl::StrCat("gone-", i), root_ + "/none").ok());
  }
  EXPECT_THAT(Listed(), ElementsAre("models/m"));
  // The errors of the last ones are kept for who asks by name.
  const auto error_of = [&](const std::string& name) {
    wan::v1::GetModelRequest get;
    get.set_name(name);
    wan::v1::Model model;
    grpc::ClientContext context;
    return models_->GetModel(&context, get, &model).error_message();
  };
  EXPECT_THAT(error_of("gone-49"), HasSubstr("its last load failed"));
  EXPECT_EQ(error_of("gone-0"), "there is no model 'gone-0'");
  const HostPort address = server_->metrics_address();
  const auto metrics = support::HttpGet(address.host, address.port, "/metrics");
  ASSERT_TRUE(metrics.ok());
  EXPECT_THAT(metrics->body, Not(HasSubstr("\"gone-0\"")));
}

TEST_F(LoadingTest, ModelsThatWereUnloadedAreForgottenAndConfiguredOnesAreNot) {
  StartWithRoot();
  const auto unload = [&](const std::string& name) {
    wan::v1::UnloadModelRequest request;
    request.set_name(name);
    wan::v1::Model model;
    grpc::ClientContext context;
    EXPECT_TRUE(models_->UnloadModel(&context, request, &model).ok());
  };
  unload("m");
  for (int i = 0; i < 40; ++i) {
    const std::string name = absl::StrCat("brief-", i);
    EXPECT_TRUE(Load(name, "synthetic:ti2v-5b").ok());
    unload(name);
  }
  EXPECT_THAT(Listed(), SizeIs(33));
  EXPECT_THAT(Listed(), Contains("models/m"));
}

TEST_F(LoadingTest, AServerThatKnowsItsCallersLoadsFromNowhereUntilItIsTold) {
  const std::string admin = NewTokenOf("root", Role::kAdmin);
  StartModels(AuthenticatedConfig());
  EXPECT_THAT(ViolatedFields(Load("x", root_, "", admin)), ElementsAre("path"));
  // What the operator configured is not a caller's to refuse.
  EXPECT_TRUE(Load("m", "", "", admin).ok());
}

TEST_F(LoadingTest, AUserLearnsNothingOfAModelThatCouldNotBeLoaded) {
  const std::string admin = NewTokenOf("root", Role::kAdmin);
  const std::string user = NewTokenOf("alice", Role::kUser);
  ServerConfig config = AuthenticatedConfig();
  config.model_roots = {root_};
  StartModels(config);
  EXPECT_FALSE(Load("broken", root_ + "/none", "", admin).ok());
  wan::v1::CreateJobRequest create;
  *create.mutable_request() = SmallRequest();
  create.mutable_request()->set_model("broken");
  wan::v1::Job job;
  const grpc::Status refused = video_->CreateJob(As(user).get(), create, &job);
  EXPECT_THAT(ViolatedFields(refused), ElementsAre("model"));
  EXPECT_THAT(refused.error_message(), Not(HasSubstr("does not exist")));
  wan::v1::GetModelRequest get;
  get.set_name("broken");
  wan::v1::Model model;
  const grpc::Status told = models_->GetModel(As(admin).get(), get, &model);
  EXPECT_THAT(told.error_message(), HasSubstr("does not exist"));
}

}  // namespace
}  // namespace wan::server
