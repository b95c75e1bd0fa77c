#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/server/rpc/server_fixture.h"
#include "tests/support/rpc_errors.h"
#include "wan/v1/model_management.grpc.pb.h"

namespace wan::server {
namespace {

using support::DetailOf;
using support::ReasonOf;
using support::ViolatedFields;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kLoading[] = "Model_Initialization";

class ModelManagementTest : public ServerTest {
 protected:
  void SetUp() override {
    StartServing();
    models_ = wan::v1::ModelManagement::NewStub(channel_);
  }

  grpc::Status Load(const std::string& name, const std::string& path, wan::v1::Model* model) {
    grpc::ClientContext context;
    wan::v1::LoadModelRequest request;
    request.set_name(name);
    request.set_path(path);
    request.set_wait(true);
    return models_->LoadModel(&context, request, model);
  }

  grpc::Status Unload(const std::string& name, wan::v1::Model* model) {
    grpc::ClientContext context;
    wan::v1::UnloadModelRequest request;
    request.set_name(name);
    return models_->UnloadModel(&context, request, model);
  }

  std::vector<wan::v1::Model> List() {
    grpc::ClientContext context;
    wan::v1::ListModelsResponse response;
    EXPECT_TRUE(models_->ListModels(&context, {}, &response).ok());
    return {response.models().begin(), response.models().end()};
  }

  std::unique_ptr<wan::v1::ModelManagement::Stub> models_;
};

TEST_F(ModelManagementTest, AConfiguredModelIsListedWithWhatItIs) {
  const auto listed = List();
  ASSERT_THAT(listed, SizeIs(1));
  EXPECT_EQ(listed[0].name(), "models/m");
  EXPECT_EQ(listed[0].state(), wan::v1::MODEL_STATE_READY);
  EXPECT_EQ(listed[0].path(), "synthetic:ti2v-5b");
  EXPECT_THAT(listed[0].components(), SizeIs(3));
  EXPECT_EQ(listed[0].defaults().steps(), 3);
  EXPECT_EQ(listed[0].spatial_stride(), 32);
  EXPECT_EQ(engine_.Warmups(), 1) << "READY means warm";
}

TEST_F(ModelManagementTest, AModelIsLoadedUsedAndUnloaded) {
  wan::v1::Model model;
  ASSERT_TRUE(Load("models/second", "/checkpoints/second", &model).ok());
  EXPECT_EQ(model.name(), "models/second");
  EXPECT_EQ(model.state(), wan::v1::MODEL_STATE_READY);
  wan::v1::GenerationRequest request = SmallRequest();
  request.set_model("second");
  EXPECT_EQ(AwaitEnd(MustCreate(request).name()).state(), wan::v1::JOB_STATE_COMPLETED);
  ASSERT_TRUE(Unload("second", &model).ok());
  EXPECT_EQ(model.state(), wan::v1::MODEL_STATE_UNLOADED);
  wan::v1::Job job;
  const grpc::Status status = CreateJob(request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonOf(status), "MODEL_NOT_READY");
}

TEST_F(ModelManagementTest, EverythingElseIsAnsweredWhileAModelLoads) {
  engine_.Hold(kLoading);
  std::thread loader([this] {
    wan::v1::Model model;
    EXPECT_TRUE(Load("second", "/checkpoints/second", &model).ok());
  });
  engine_.AwaitHeld(kLoading);
  EXPECT_THAT(List(), SizeIs(2));
  EXPECT_EQ(List()[1].state(), wan::v1::MODEL_STATE_LOADING);
  wan::v1::GenerationRequest request = SmallRequest();
  request.set_model("second");
  wan::v1::Job job;
  const grpc::Status status = CreateJob(request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(status), "MODEL_LOADING");
  EXPECT_TRUE(DetailOf<google::rpc::RetryInfo>(status).has_value());
  EXPECT_EQ(MustCreate().state(), wan::v1::JOB_STATE_QUEUED);
  engine_.Release(kLoading);
  loader.join();
}

TEST_F(ModelManagementTest, ADamagedCheckpointLeavesTheServerUp) {
  engine_.FailAt(kLoading, absl::DataLossError("model.safetensors: tensor 'x' ends at byte 9"));
  wan::v1::Model model;
  const grpc::Status status = Load("second", "/checkpoints/broken", &model);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_THAT(status.error_message(), HasSubstr("model.safetensors: tensor 'x'"));
  EXPECT_THAT(List(), SizeIs(1)) << "no entry for what never was a model";
  grpc::ClientContext context;
  wan::v1::GetModelRequest get;
  get.set_name("second");
  const grpc::Status gone = models_->GetModel(&context, get, &model);
  EXPECT_EQ(gone.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(gone.error_message(),
            "there is no model 'second'; its last load failed: " + status.error_message());
  EXPECT_TRUE(IsServing());
  EXPECT_EQ(AwaitEnd(MustCreate().name()).state(), wan::v1::JOB_STATE_COMPLETED);
  // Repaired, it can be loaded.
  EXPECT_TRUE(Load("second", "/checkpoints/broken", &model).ok());
}

TEST_F(ModelManagementTest, AModelInUseIsNotUnloaded) {
  engine_.Hold("T5_Encoding");
  MustCreate();
  engine_.AwaitHeld("T5_Encoding");
  wan::v1::Model model;
  const grpc::Status status = Unload("m", &model);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonOf(status), "MODEL_IN_USE");
}

TEST_F(ModelManagementTest, WarmupRunsTheShapes) {
  grpc::ClientContext context;
  wan::v1::WarmupModelRequest request;
  request.set_name("models/m");
  request.set_wait(true);
  auto* shape = request.add_shapes();
  shape->set_width(128);
  shape->set_height(64);
  shape->set_num_frames(9);
  wan::v1::Model model;
  ASSERT_TRUE(models_->WarmupModel(&context, request, &model).ok());
  ASSERT_THAT(model.warm_shapes(), SizeIs(2));
  EXPECT_EQ(model.warm_shapes(1).width(), 128);
  EXPECT_EQ(model.warm_shapes(1).height(), 64);
  EXPECT_EQ(model.warm_shapes(1).num_frames(), 9);
}

TEST_F(ModelManagementTest, UnknownModels) {
  wan::v1::Model model;
  grpc::ClientContext context;
  wan::v1::WarmupModelRequest warmup;
  warmup.set_name("nobody");
  for (const grpc::Status& status :
       {Unload("nobody", &model), models_->WarmupModel(&context, warmup, &model)}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(ReasonOf(status), "MODEL_NOT_FOUND");
  }
  EXPECT_EQ(Load("nobody", "", &model).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Load("no body", "/x", &model).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  wan::v1::GenerationRequest request = SmallRequest();
  request.set_model("nobody");
  wan::v1::Job job;
  EXPECT_THAT(ViolatedFields(CreateJob(request, &job)), ::testing::ElementsAre("model"));
}

TEST_F(ModelManagementTest, AWarmupEndsWithItsCaller) {
  engine_.Hold("Warmup");
  grpc::ClientContext context;
  grpc::Status status;
  std::thread caller([&] {
    wan::v1::WarmupModelRequest request;
    request.set_name("m");
    request.set_wait(true);
    wan::v1::Model model;
    status = models_->WarmupModel(&context, request, &model);
  });
  engine_.AwaitHeld("Warmup");
  const std::string waiting = MustCreate().name();
  context.TryCancel();
  caller.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  // The engine is still told to hold: only the stop ends it, and the job has its turn.
  EXPECT_EQ(AwaitEnd(waiting).state(), wan::v1::JOB_STATE_COMPLETED);
}

TEST_F(ModelManagementTest, AWarmupOfManyShapesIsRefusedAtOnce) {
  engine_.Hold("T5_Encoding");
  MustCreate();
  engine_.AwaitHeld("T5_Encoding");  // the answer does not wait for the job
  wan::v1::WarmupModelRequest request;
  request.set_name("m");
  for (int i = 0; i < 400; ++i) {
    auto* const shape = request.add_shapes();
    shape->set_width(64);
    shape->set_height(64);
    shape->set_num_frames(5);
  }
  wan::v1::Model model;
  {
    grpc::ClientContext context;
    const grpc::Status status = models_->WarmupModel(&context, request, &model);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(ViolatedFields(status), ::testing::ElementsAre("shapes"));
    EXPECT_THAT(status.error_message(), HasSubstr("has 400 entries; must have at most 16"));
  }
  request.mutable_shapes()->DeleteSubrange(16, 384);
  request.mutable_shapes(3)->set_width(65);
  request.mutable_shapes(15)->set_num_frames(6);
  {
    grpc::ClientContext context;
    EXPECT_THAT(ViolatedFields(models_->WarmupModel(&context, request, &model)),
                ::testing::UnorderedElementsAre("shapes[3].width", "shapes[15].num_frames"));
  }
  engine_.Release("T5_Encoding");
  EXPECT_EQ(engine_.Warmups(), 1) << "the one of loading";
}

TEST_F(ModelManagementTest, AStoppingServerEndsTheWarmupThatRuns) {
  engine_.Hold("Warmup");
  grpc::Status status;
  std::thread caller([&] {
    grpc::ClientContext context;
    wan::v1::WarmupModelRequest request;
    request.set_name("m");
    request.set_wait(true);
    wan::v1::Model model;
    status = models_->WarmupModel(&context, request, &model);
  });
  engine_.AwaitHeld("Warmup");
  server_->Stop();  // returns although the engine is told to hold
  caller.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(status), "SERVER_STOPPING");
}

TEST_F(ModelManagementTest, AStoppingServerEndsLoadsThatRunAndThatWait) {
  engine_.Hold(kLoading);
  std::vector<grpc::Status> ends(2);
  std::thread first([&] {
    wan::v1::Model model;
    ends[0] = Load("second", "/x", &model);
  });
  engine_.AwaitHeld(kLoading);
  std::thread second([&] {
    wan::v1::Model model;
    ends[1] = Load("third", "/x", &model);
  });
  while (List().size() < 3) std::this_thread::yield();
  server_->Stop();  // returns although the engine is told to hold
  first.join();
  second.join();
  for (const grpc::Status& end : ends) {
    EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(ReasonOf(end), "SERVER_STOPPING");
  }
}

TEST_F(ModelManagementTest, ALoadThatDoesNotWaitIsFollowedToItsEnd) {
  engine_.Hold(kLoading);
  wan::v1::LoadModelRequest load;
  load.set_name("second");
  load.set_path("/checkpoints/second");
  wan::v1::Model model;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(models_->LoadModel(&context, load, &model).ok());  // the engine is held
  }
  EXPECT_EQ(model.state(), wan::v1::MODEL_STATE_LOADING);
  ASSERT_THAT(model.operations(), SizeIs(1));
  EXPECT_EQ(model.operations(0).kind(), wan::v1::ModelOperation::KIND_LOAD);
  EXPECT_FALSE(model.operations(0).has_end_time());
  {
    // Who asks again joins it.
    grpc::ClientContext context;
    wan::v1::Model again;
    ASSERT_TRUE(models_->LoadModel(&context, load, &again).ok());
    EXPECT_EQ(again.operations(0).name(), model.operations(0).name());
    EXPECT_THAT(again.operations(), SizeIs(1));
  }
  grpc::ClientContext context;
  wan::v1::WatchModelRequest watch;
  watch.set_name("models/second");
  watch.set_operation(model.operations(0).name());
  const auto stream = models_->WatchModel(&context, watch);
  wan::v1::WatchModelResponse seen;
  ASSERT_TRUE(stream->Read(&seen));
  EXPECT_EQ(seen.model().state(), wan::v1::MODEL_STATE_LOADING);
  engine_.Release(kLoading);
  while (stream->Read(&seen)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(seen.model().state(), wan::v1::MODEL_STATE_READY);
  EXPECT_TRUE(seen.model().operations(0).has_end_time());
  EXPECT_FALSE(seen.model().operations(0).has_error());
}

TEST_F(ModelManagementTest, ALoadThatFailsTellsItsWatcherWhy) {
  engine_.FailAt(kLoading, absl::DataLossError("model.safetensors: tensor 'x' ends at byte 9"));
  wan::v1::Model model;
  {
    grpc::ClientContext context;
    wan::v1::LoadModelRequest load;
    load.set_name("second");
    load.set_path("/checkpoints/broken");
    ASSERT_TRUE(models_->LoadModel(&context, load, &model).ok());
  }
  ASSERT_THAT(model.operations(), SizeIs(1));
  grpc::ClientContext context;
  wan::v1::WatchModelRequest watch;
  watch.set_name("second");
  watch.set_operation(model.operations(0).name());
  const auto stream = models_->WatchModel(&context, watch);
  wan::v1::WatchModelResponse seen;
  while (stream->Read(&seen)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(seen.model().state(), wan::v1::MODEL_STATE_FAILED);
  EXPECT_THAT(seen.model().operations(0).error().message(), HasSubstr("tensor 'x'"));
}

// A watcher of the model, not of an operation: it sees the failure, and then that the model is
// gone.
TEST_F(ModelManagementTest, AWatchedModelThatNeverLoadsGoes) {
  engine_.Hold(kLoading);
  wan::v1::Model model;
  {
    grpc::ClientContext context;
    wan::v1::LoadModelRequest load;
    load.set_name("second");
    load.set_path("/checkpoints/broken");
    ASSERT_TRUE(models_->LoadModel(&context, load, &model).ok());
  }
  grpc::ClientContext context;
  wan::v1::WatchModelRequest watch;
  watch.set_name("second");
  const auto stream = models_->WatchModel(&context, watch);
  wan::v1::WatchModelResponse seen;
  ASSERT_TRUE(stream->Read(&seen));
  EXPECT_EQ(seen.model().state(), wan::v1::MODEL_STATE_LOADING);
  engine_.FailAt(kLoading, absl::DataLossError("model.safetensors: tensor 'x' ends at byte 9"));
  engine_.Release(kLoading);
  while (stream->Read(&seen)) {
  }
  EXPECT_EQ(seen.model().state(), wan::v1::MODEL_STATE_FAILED);
  EXPECT_THAT(seen.model().error().message(), HasSubstr("tensor 'x'"));
  const grpc::Status end = stream->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(end.error_message(), HasSubstr("its last load failed: model.safetensors"));
}

TEST_F(ModelManagementTest, AWarmupThatDoesNotWaitIsAnOperation) {
  engine_.Hold("Warmup");
  wan::v1::Model model;
  {
    grpc::ClientContext context;
    wan::v1::WarmupModelRequest request;
    request.set_name("m");
    ASSERT_TRUE(models_->WarmupModel(&context, request, &model).ok());
  }
  EXPECT_EQ(model.state(), wan::v1::MODEL_STATE_READY);
  ASSERT_THAT(model.operations(), SizeIs(2)) << "the load at the start, and this";
  EXPECT_EQ(model.operations(1).kind(), wan::v1::ModelOperation::KIND_WARMUP);
  EXPECT_FALSE(model.operations(1).has_end_time());
  grpc::ClientContext context;
  wan::v1::WatchModelRequest watch;
  watch.set_name("m");
  watch.set_operation(model.operations(1).name());
  const auto stream = models_->WatchModel(&context, watch);
  wan::v1::WatchModelResponse seen;
  ASSERT_TRUE(stream->Read(&seen));
  engine_.Release("Warmup");
  while (stream->Read(&seen)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(seen.model().operations(1).has_end_time());
}

TEST_F(ModelManagementTest, AWatcherWithoutAnOperationSeesEveryChangeUntilTheServerStops) {
  grpc::ClientContext context;
  wan::v1::WatchModelRequest watch;
  watch.set_name("m");
  const auto stream = models_->WatchModel(&context, watch);
  wan::v1::WatchModelResponse seen;
  ASSERT_TRUE(stream->Read(&seen));
  EXPECT_EQ(seen.model().state(), wan::v1::MODEL_STATE_READY);
  wan::v1::Model model;
  ASSERT_TRUE(Unload("m", &model).ok());
  ASSERT_TRUE(stream->Read(&seen));
  EXPECT_EQ(seen.model().state(), wan::v1::MODEL_STATE_UNLOADED);
  server_->Stop();
  while (stream->Read(&seen)) {
  }
  EXPECT_EQ(ReasonOf(stream->Finish()), "SERVER_STOPPING");
}

TEST_F(ModelManagementTest, OnlyTheLastOperationsThatEndedAreKept) {
  wan::v1::Model model;
  for (int i = 0; i < 12; ++i) {
    grpc::ClientContext context;
    wan::v1::WarmupModelRequest request;
    request.set_name("m");
    request.set_wait(true);
    ASSERT_TRUE(models_->WarmupModel(&context, request, &model).ok());
  }
  EXPECT_THAT(model.operations(), SizeIs(8));
}

TEST_F(ModelManagementTest, GetAndWatchOfWhatIsNotThere) {
  wan::v1::Model model;
  {
    grpc::ClientContext context;
    wan::v1::GetModelRequest get;
    get.set_name("models/m");
    ASSERT_TRUE(models_->GetModel(&context, get, &model).ok());
    EXPECT_EQ(model.name(), "models/m");
    EXPECT_EQ(model.state(), wan::v1::MODEL_STATE_READY);
  }
  {
    grpc::ClientContext context;
    wan::v1::GetModelRequest get;
    get.set_name("nobody");
    EXPECT_EQ(ReasonOf(models_->GetModel(&context, get, &model)), "MODEL_NOT_FOUND");
  }
  for (const auto& [name, operation, reason] :
       {std::tuple("nobody", "", "MODEL_NOT_FOUND"),
        std::tuple("m", "models/m/operations/77", "OPERATION_NOT_FOUND")}) {
    grpc::ClientContext context;
    wan::v1::WatchModelRequest watch;
    watch.set_name(name);
    watch.set_operation(operation);
    const auto stream = models_->WatchModel(&context, watch);
    wan::v1::WatchModelResponse seen;
    EXPECT_FALSE(stream->Read(&seen));
    EXPECT_EQ(ReasonOf(stream->Finish()), reason);
  }
}

TEST_F(ModelManagementTest, ModelsAreListedInPages) {
  wan::v1::Model model;
  for (const char* const name : {"a", "b", "c", "d"}) ASSERT_TRUE(Load(name, "/x", &model).ok());
  std::vector<std::string> names;
  wan::v1::ListModelsRequest request;
  request.set_page_size(2);
  int pages = 0;
  do {
    grpc::ClientContext context;
    wan::v1::ListModelsResponse page;
    ASSERT_TRUE(models_->ListModels(&context, request, &page).ok());
    EXPECT_LE(page.models_size(), 2);
    for (const wan::v1::Model& listed : page.models()) names.push_back(listed.name());
    request.set_page_token(page.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(pages, 3);
  EXPECT_THAT(names,
              ::testing::ElementsAre("models/a", "models/b", "models/c", "models/d", "models/m"));
  request.set_page_size(-1);
  request.set_page_token("nonsense");
  grpc::ClientContext context;
  wan::v1::ListModelsResponse page;
  EXPECT_THAT(ViolatedFields(models_->ListModels(&context, request, &page)),
              ::testing::ElementsAre("page_size", "page_token"));
}

}  // namespace
}  // namespace wan::server
