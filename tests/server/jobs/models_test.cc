// The life of models, through the service that owns their table.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/jobs/model_operations.h"
#include "server/jobs/model_spec.h"
#include "tests/server/jobs/model_answer.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using wan::v1::MODEL_STATE_FAILED;
using wan::v1::MODEL_STATE_LOADING;
using wan::v1::MODEL_STATE_READY;
using wan::v1::MODEL_STATE_UNLOADED;

constexpr char kPath[] = "synthetic:ti2v-5b";

class ModelsTest : public ServiceTest {
 protected:
  ModelsTest() { Open(/*load=*/false); }

  ModelTable& models() { return service_->models(); }
  ModelOperations& model_operations() { return service_->model_operations(); }

  absl::StatusOr<wan::v1::Model> Load(const std::string& name, const std::string& path = kPath) {
    ModelAnswer answer;
    model_operations().Load({name, path}, answer.Take());
    return answer.Wait();
  }
  absl::StatusOr<wan::v1::Model> Unload(const std::string& name) {
    ModelAnswer answer;
    model_operations().Unload(name, answer.Take());
    return answer.Wait();
  }
  absl::StatusOr<wan::v1::Model> Warmup(const std::string& name, std::vector<VideoShape> shapes) {
    ModelAnswer answer;
    model_operations().Warmup(name, std::move(shapes), answer.Take());
    return answer.Wait();
  }
};

TEST_F(ModelsTest, KnownModelIsUnloadedUntilItIsLoaded) {
  ASSERT_TRUE(models().Add({"m", kPath}).ok());
  EXPECT_EQ(models().Get("models/m")->state(), MODEL_STATE_UNLOADED);
  EXPECT_EQ(models().Get("m")->family(), "");
  EXPECT_FALSE(models().IsReady("m"));
  const auto model = Load("models/m", "");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->name(), "models/m");
  EXPECT_EQ(model->state(), MODEL_STATE_READY);
  EXPECT_EQ(model->path(), kPath);
  EXPECT_EQ(model->family(), "ti2v-5b");
  EXPECT_EQ(model->components_size(), 3);
  EXPECT_EQ(model->warm_shapes_size(), 1);  // loading warms up
  EXPECT_EQ(model->defaults().steps(), 3);
  EXPECT_TRUE(models().IsReady("m"));
  EXPECT_EQ(engine_->Loads(), 1);
  EXPECT_EQ(engine_->Warmups(), 1);
}

TEST_F(ModelsTest, AddRefusesBadAndKnownNames) {
  ASSERT_TRUE(models().Add({"m", kPath}).ok());
  EXPECT_EQ(models().Add({"m", "other"}).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(FieldViolationsOf(models().Add({"a/b", ""})).size(), 2u);
  EXPECT_EQ(Load("a b").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(Load("unknown", "").status()), kReasonModelNotFound);
  EXPECT_EQ(ReasonOf(models().Get("unknown").status()), kReasonModelNotFound);
  EXPECT_EQ(ReasonOf(Unload("unknown").status()), kReasonModelNotFound);
  EXPECT_EQ(ReasonOf(Warmup("unknown", {}).status()), kReasonModelNotFound);
  EXPECT_EQ(models().List().size(), 1u);
}

TEST_F(ModelsTest, LoadingWhatIsLoadedDoesNothing) {
  ASSERT_TRUE(Load("m").ok());
  EXPECT_TRUE(Load("m").ok());
  EXPECT_TRUE(Load("m", "").ok());
  EXPECT_EQ(engine_->Loads(), 1);
  const auto other = Load("m", "/elsewhere");
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(other.status()), kReasonModelLoaded);
}

TEST_F(ModelsTest, LorasBelongToWhatIsLoaded) {
  const auto load = [&](const std::string& path, std::vector<LoraSource> loras) {
    ModelAnswer answer;
    model_operations().Load({"m", path, std::move(loras)}, answer.Take());
    return answer.Wait().status();
  };
  const LoraSource style = {"style", std::nullopt, "/style"};
  const LoraSource light = {"light", ExpertRole::kLowNoise, "/light"};
  ASSERT_TRUE(models().Add({"m", kPath, {style}}).ok());
  EXPECT_TRUE(load("", {}).ok());
  EXPECT_THAT(engine_->Loaded().back().loras, ElementsAre(style)) << "those that are known";
  EXPECT_TRUE(load(kPath, {style}).ok());
  EXPECT_EQ(engine_->Loads(), 1) << "the same again";

  const absl::Status refused = load("/elsewhere", {style});
  EXPECT_EQ(ReasonOf(refused), kReasonModelLoaded);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("with the LoRAs style"));
  ASSERT_TRUE(Unload("m").ok());
  EXPECT_TRUE(load("", {light}).ok());
  EXPECT_THAT(engine_->Loaded().back().loras, ElementsAre(light));
  ASSERT_TRUE(Unload("m").ok());
  EXPECT_TRUE(load(kPath, {}).ok());
  EXPECT_THAT(engine_->Loaded().back().loras, testing::IsEmpty()) << "a path is the whole of it";

  std::vector<std::string> fields;
  for (const FieldViolation& violation :
       FieldViolationsOf(load("x", {{"a b", std::nullopt, ""}}))) {
    fields.push_back(violation.field);
  }
  EXPECT_THAT(fields, ElementsAre("loras[0].name", "loras[0].path"));
}

TEST_F(ModelsTest, LorasAndPathsHaveLimits) {
  std::vector<LoraSource> loras(kMaxLorasOfModel, LoraSource{"style", std::nullopt, "/style"});
  EXPECT_TRUE(models().Add({"most", std::string(kMaxPathBytes, 'p'), loras}).ok());
  loras.push_back(loras[0]);
  auto violations = FieldViolationsOf(models().Add({"more", "path", loras}));
  ASSERT_THAT(violations, SizeIs(1));
  EXPECT_EQ(violations[0].field, "loras");
  EXPECT_EQ(violations[0].description, "has 65 entries; must have at most 64");
  violations = FieldViolationsOf(
      models().Add({"longer",
                    std::string(kMaxPathBytes + 1, 'p'),
                    {LoraSource{"style", std::nullopt, std::string(kMaxPathBytes + 1, 'p')}}}));
  ASSERT_THAT(violations, SizeIs(2));
  EXPECT_EQ(violations[0].field, "path");
  EXPECT_EQ(violations[1].field, "loras[0].path");
  EXPECT_EQ(violations[1].description, "has 4097 bytes; must have at most 4096");
}

TEST_F(ModelsTest, LoadsOnTheirWayAreWaitedFor) {
  engine_->Hold("Model_Initialization");
  ModelAnswer first;
  ModelAnswer second;
  model_operations().Load({"m", kPath}, first.Take());
  engine_->AwaitHeld("Model_Initialization");
  model_operations().Load({"m", ""}, second.Take());
  EXPECT_EQ(models().Get("m")->state(), MODEL_STATE_LOADING);
  EXPECT_FALSE(first.there() || second.there());
  EXPECT_EQ(ReasonOf(Load("m", "elsewhere").status()), kReasonModelLoading);
  EXPECT_EQ(ReasonOf(Unload("m").status()), kReasonModelLoading);
  EXPECT_EQ(ReasonOf(Warmup("m", {}).status()), kReasonModelLoading);
  const absl::Status request = calls().Create(Request(), false).status();
  EXPECT_EQ(request.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(request), kReasonModelLoading);
  EXPECT_TRUE(RetryDelayOf(request).has_value());
  engine_->Release("Model_Initialization");
  EXPECT_TRUE(first.Wait().ok() && second.Wait().ok());
  EXPECT_EQ(engine_->Loads(), 1);
}

TEST_F(ModelsTest, FailureIsKeptAndCanBeRepaired) {
  engine_->FailAt("Model_Initialization",
                  absl::DataLossError("shard-2.safetensors: blocks.3.ffn.0.weight is cut"));
  ASSERT_TRUE(models().Add({"m", kPath}).ok());
  EXPECT_EQ(Load("m").status().code(), absl::StatusCode::kDataLoss);
  const wan::v1::Model model = *models().Get("m");
  EXPECT_EQ(model.state(), MODEL_STATE_FAILED);
  EXPECT_THAT(model.error().message(), HasSubstr("blocks.3.ffn.0.weight"));
  const absl::Status request = calls().Create(Request(), false).status();
  EXPECT_EQ(request.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(request), kReasonModelNotReady);
  EXPECT_THAT(std::string(request.message()), HasSubstr("blocks.3.ffn.0.weight"));
  const auto repaired = Load("m", "/elsewhere");
  ASSERT_TRUE(repaired.ok());
  EXPECT_FALSE(repaired->has_error());
  EXPECT_EQ(repaired->path(), "/elsewhere");
}

TEST_F(ModelsTest, ANameThatWasNeverLoadedLeavesNoEntry) {
  engine_->FailAt("Model_Initialization", absl::DataLossError("/a/x.safetensors: is cut"));
  EXPECT_EQ(Load("m").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(models().List(), SizeIs(0));
  EXPECT_THAT(models().List(wan::v1::ListModelsRequest())->models(), SizeIs(0));
  EXPECT_EQ(models().StateOf("m"), std::nullopt);
  const absl::Status gone = models().Get("m").status();
  EXPECT_EQ(ReasonOf(gone), kReasonModelNotFound);
  EXPECT_EQ(gone.message(),
            "there is no model 'm'; its last load failed: /a/x.safetensors: is cut");
  EXPECT_EQ(ReasonOf(Load("m", "").status()), kReasonModelNotFound);
  EXPECT_EQ(ReasonOf(Unload("m").status()), kReasonModelNotFound);
  EXPECT_EQ(ReasonOf(Warmup("m", {}).status()), kReasonModelNotFound);
  const absl::Status request = calls().Create(Request(), false).status();
  EXPECT_EQ(request.code(), absl::StatusCode::kInvalidArgument);
  // Who follows the operation finds it.
  const auto ended = models().GetEnded("m");
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->state(), MODEL_STATE_FAILED);
  ASSERT_THAT(ended->operations(), SizeIs(1));
  EXPECT_EQ(ended->operations(0).error().message(), "/a/x.safetensors: is cut");
  ASSERT_TRUE(Load("m").ok());
  EXPECT_EQ(models().Get("m")->state(), MODEL_STATE_READY);
  // It has been a model: a later failure is shown, and does not change what is known of it.
  ASSERT_TRUE(Unload("m").ok());
  engine_->FailAt("Model_Initialization", absl::DataLossError("/b/x.safetensors: is cut"));
  EXPECT_FALSE(Load("m", "/elsewhere").ok());
  EXPECT_EQ(models().Get("m")->state(), MODEL_STATE_FAILED);
  EXPECT_EQ(models().Get("m")->path(), kPath);
  EXPECT_TRUE(Load("m", "").ok());
}

TEST_F(ModelsTest, ALoadedModelGetsOtherLoras) {
  const auto load = [&](std::vector<LoraSource> loras) {
    ModelAnswer answer;
    model_operations().Load({"m", kPath, std::move(loras)}, answer.Take());
    return answer.Wait();
  };
  const LoraSource style = {"style", std::nullopt, "/style"};
  const LoraSource light = {"light", std::nullopt, "/light"};
  ASSERT_TRUE(load({style}).ok());
  ASSERT_TRUE(load({style, light}).ok());
  EXPECT_THAT(engine_->Loaded().back().loras, ElementsAre(style, light));

  // The engine refuses a file: the model stays what it was.
  engine_->FailAt("Model_Initialization", absl::DataLossError("LoRA 'bad': /bad: is cut"));
  const auto refused = load({{"bad", std::nullopt, "/bad"}});
  EXPECT_EQ(refused.status(), absl::DataLossError("LoRA 'bad': /bad: is cut"));
  const wan::v1::Model model = *models().Get("m");
  EXPECT_EQ(model.state(), MODEL_STATE_READY);
  EXPECT_FALSE(model.has_error());
  EXPECT_THAT(model.operations().rbegin()->error().message(), HasSubstr("LoRA 'bad'"));
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
  const int loads = engine_->Loads();
  EXPECT_TRUE(load({style, light}).ok());
  EXPECT_EQ(engine_->Loads(), loads) << "it has these already";

  // A job was accepted with the LoRAs that are there.
  engine_->Hold("T5_Encoding");
  const std::string running = Create();
  engine_->AwaitHeld("T5_Encoding");
  EXPECT_EQ(ReasonOf(load({}).status()), kReasonModelInUse);
  EXPECT_EQ(models().Get("m")->state(), MODEL_STATE_READY);
  engine_->Release("T5_Encoding");
  RunToEnd(running);
  EXPECT_TRUE(load({}).ok());
  EXPECT_THAT(engine_->Loaded().back().loras, testing::IsEmpty());
}

// A job runs and others come while a LoRA is added; it can be used from then on.
TEST_F(ModelsTest, LorasAreAddedWhileJobsNeedTheModel) {
  const LoraSource style = {"style", std::nullopt, "/style"};
  const LoraSource light = {"light", std::nullopt, "/light"};
  const auto edit = [&](const LoraEdits& edits) {
    ModelAnswer answer;
    model_operations().Load({"m", ""}, answer.Take(), edits);
    return answer;
  };
  ModelAnswer loaded;
  model_operations().Load({"m", kPath, {style}}, loaded.Take());
  ASSERT_TRUE(loaded.Wait().ok());
  engine_->Hold("T5_Encoding");
  const std::string running = Create();
  engine_->AwaitHeld("T5_Encoding");
  ModelAnswer added = edit({{light}, {}});
  EXPECT_EQ(models().Get("m")->state(), MODEL_STATE_READY);
  const std::string waiting = Create();
  EXPECT_FALSE(added.there());
  EXPECT_EQ(ReasonOf(edit({{}, {"style"}}).Wait().status()), kReasonModelLoading);
  engine_->Release("T5_Encoding");
  ASSERT_TRUE(added.Wait().ok());
  EXPECT_THAT(engine_->Loaded().back().loras, ElementsAre(style, light));
  EXPECT_EQ(Brief(RunToEnd(running).back()), "completed");
  EXPECT_EQ(Brief(RunToEnd(waiting).back()), "completed");
  ASSERT_TRUE(edit({{}, {"style"}}).Wait().ok());
  EXPECT_THAT(engine_->Loaded().back().loras, ElementsAre(light));
  const auto unknown = FieldViolationsOf(edit({{}, {"style"}}).Wait().status());
  ASSERT_THAT(unknown, SizeIs(1));
  EXPECT_EQ(unknown[0].field, "removed_loras[0]");
}

// Somebody has linked the path to other weights since. They are not what jobs were planned for.
TEST_F(ModelsTest, OtherLorasLeaveTheModelWhereverItsPathLeadsSince) {
  const std::filesystem::path roots = folder_.path() / "roots";
  for (const char* const version : {"one", "two"}) {
    std::filesystem::create_directories(roots / version);
  }
  std::ofstream(roots / "style") << "a LoRA";
  const std::filesystem::path link = roots / "current";
  std::filesystem::create_directory_symlink("one", link);
  Close();
  options_.model_roots = ModelRoots({roots.string()});
  Open(/*load=*/false);
  ASSERT_TRUE(Load("m", link).ok());
  const std::string one = engine_->Loaded().back().path;
  EXPECT_THAT(one, testing::EndsWith("/one"));
  const auto add = [&](const std::string& name) {
    ModelAnswer answer;
    model_operations().Load({"m", ""}, answer.Take(),
                            {{{name, std::nullopt, roots / "style"}}, {}});
    return answer.Wait().status();
  };
  std::filesystem::remove(link);
  EXPECT_TRUE(add("first").ok()) << "the folder need not even be there";
  EXPECT_EQ(engine_->Loaded().back().path, one);
  std::filesystem::create_directory_symlink("two", link);
  EXPECT_TRUE(add("second").ok());
  EXPECT_EQ(engine_->Loaded().back().path, one);
  EXPECT_THAT(engine_->Loaded().back().loras, testing::SizeIs(2));
  ASSERT_TRUE(Unload("m").ok());
  ASSERT_TRUE(Load("m", link).ok());
  EXPECT_THAT(engine_->Loaded().back().path, testing::EndsWith("/two"));
}

// What replaces it cannot be warmed up: then there is no model any more, and that is shown.
TEST_F(ModelsTest, AReplacementThatCannotRunLeavesNoModel) {
  ASSERT_TRUE(Load("m").ok());
  engine_->FailAt("Warmup", absl::ResourceExhaustedError("out of memory"));
  ModelAnswer answer;
  model_operations().Load({"m", kPath, {{"style", std::nullopt, "/style"}}}, answer.Take());
  EXPECT_EQ(answer.Wait().status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(models().Get("m")->state(), MODEL_STATE_FAILED);
  EXPECT_TRUE(Load("m", "").ok());
  EXPECT_THAT(engine_->Loaded().back().loras, testing::IsEmpty()) << "as it was last loaded";
}

TEST_F(ModelsTest, RelativePathsAreShownAsTheyAreLookedUp) {
  const std::string here = std::filesystem::current_path().string();
  ASSERT_TRUE(models().Add({"m", "models/m", {{"style", std::nullopt, "./loras/../style"}}}).ok());
  EXPECT_EQ(models().Get("m")->path(), here + "/models/m");
  ASSERT_TRUE(Load("m", "").ok());
  EXPECT_EQ(engine_->Loaded().back().path, here + "/models/m");
  EXPECT_EQ(engine_->Loaded().back().loras[0].path, here + "/style");
  EXPECT_TRUE(Load("m", "models/m").status().ok()) << "with no LoRAs";
  EXPECT_EQ(Load("n", "synthetic:ti2v-5b")->path(), "synthetic:ti2v-5b");
}

TEST_F(ModelsTest, ExceptionAtLoadIsAStatus) {
  engine_->ThrowAt("Model_Initialization", "bad pickle");
  EXPECT_EQ(Load("m").status(), absl::InternalError("the engine threw: bad pickle"));
  EXPECT_TRUE(Load("m").ok());
}

TEST_F(ModelsTest, AModelThatCannotBeWarmedUpIsFailedAndHoldsNoMemory) {
  engine_->FailAt("Warmup", absl::ResourceExhaustedError("out of memory"));
  EXPECT_EQ(Load("m").status(), absl::ResourceExhaustedError("the warm-up failed: out of memory"));
  EXPECT_EQ(models().GetEnded("m")->state(), MODEL_STATE_FAILED);
  EXPECT_THAT(engine_->Models(), SizeIs(0));
}

TEST_F(ModelsTest, AModelWhoseFirstWarmUpIsNotFiniteIsFailedWithThatReason) {
  engine_->FailAt("Warmup", NotFiniteError("the latents are not finite"));
  const absl::Status failed = Load("m").status();
  EXPECT_TRUE(IsNotFinite(failed)) << failed;
  EXPECT_EQ(failed.message(), "the warm-up failed: the latents are not finite");
  // It was never loaded, so no entry stays, but the error does.
  const absl::Status gone = models().Get("m").status();
  EXPECT_TRUE(absl::IsNotFound(gone)) << gone;
  EXPECT_THAT(std::string(gone.message()), HasSubstr(std::string(failed.message())));
  EXPECT_THAT(engine_->Models(), SizeIs(0));
}

// With other sizes a READY model may show what its first warm-up did not.
TEST_F(ModelsTest, AReadyModelWhoseWarmUpIsNotFiniteBecomesFailedAndHoldsNoMemory) {
  ASSERT_TRUE(Load("m").ok());
  engine_->FailAt("Warmup", NotFiniteError("the latents are not finite"));
  EXPECT_TRUE(IsNotFinite(Warmup("m", {}).status()));
  EXPECT_FALSE(models().IsReady("m"));
  EXPECT_EQ(models().Get("m")->state(), MODEL_STATE_FAILED);
  EXPECT_THAT(models().Get("m")->error().message(), HasSubstr("the latents are not finite"));
  EXPECT_THAT(engine_->Models(), SizeIs(0));
  EXPECT_EQ(ReasonOf(calls().Create(Request(), false).status()), kReasonModelNotReady);
  ASSERT_TRUE(Load("m").ok()) << "the weights were mended";
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

TEST_F(ModelsTest, UnloadIsRefusedWhileJobsWaitOrRun) {
  ASSERT_TRUE(Load("m").ok());
  engine_->Hold("T5_Encoding");
  const std::string running = Create();
  engine_->AwaitHeld("T5_Encoding");
  const std::string waiting = Create();
  const absl::Status refused = Unload("m").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(refused), kReasonModelInUse);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("2 jobs"));
  ASSERT_TRUE(calls().Cancel(waiting, "test").ok());
  EXPECT_EQ(ReasonOf(Unload("m").status()), kReasonModelInUse);
  engine_->Release("T5_Encoding");
  RunToEnd(running);
  const auto unloaded = Unload("m");
  ASSERT_TRUE(unloaded.ok()) << unloaded.status();
  EXPECT_EQ(unloaded->state(), MODEL_STATE_UNLOADED);
  EXPECT_THAT(engine_->Models(), SizeIs(0));
  EXPECT_EQ(ReasonOf(calls().Create(Request(), false).status()), kReasonModelNotReady);
  EXPECT_TRUE(Unload("m").ok());  // nothing to do
  EXPECT_TRUE(Load("m").ok());
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

TEST_F(ModelsTest, RefusedRequestsDoNotHoldTheModel) {
  options_.queue_capacity = 1;
  Close();
  Open();
  EXPECT_FALSE(calls().Create(Request(""), false).ok());
  engine_->Hold("T5_Encoding");
  const std::string running = Create();
  engine_->AwaitHeld("T5_Encoding");
  const std::string waiting = Create();
  EXPECT_FALSE(calls().Create(Request(), false).ok());  // the queue is full
  engine_->Release("T5_Encoding");
  RunToEnd(running);
  RunToEnd(waiting);
  EXPECT_TRUE(Unload("m").ok());
}

TEST_F(ModelsTest, WarmupRunsBetweenJobsAndAddsShapes) {
  ASSERT_TRUE(Load("m").ok());
  engine_->Hold("T5_Encoding");
  const std::string running = Create();
  engine_->AwaitHeld("T5_Encoding");
  const std::string waiting = Create();
  ModelAnswer answer;
  model_operations().Warmup("m", {{64, 64, 9}}, answer.Take());
  EXPECT_FALSE(answer.there());
  engine_->Hold("TI2V_Preprocess");
  engine_->Release("T5_Encoding");
  const auto model = answer.Wait();  // before the waiting job
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->warm_shapes(1).height(), 64);
  engine_->Release("TI2V_Preprocess");
  RunToEnd(waiting);
  engine_->FailAt("Warmup", absl::InternalError("x"));
  EXPECT_EQ(Warmup("m", {}).status().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(models().IsReady("m"));
}

TEST_F(ModelsTest, StoppingServerDropsTasks) {
  ASSERT_TRUE(Load("m").ok());
  engine_->Hold("T5_Encoding");
  Create();
  engine_->AwaitHeld("T5_Encoding");
  ModelAnswer load;
  ModelAnswer warmup;
  model_operations().Load({"n", kPath}, load.Take());
  model_operations().Warmup("m", {}, warmup.Take());
  service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
  EXPECT_EQ(ReasonOf(load.Wait().status()), kReasonServerStopping);
  EXPECT_EQ(ReasonOf(warmup.Wait().status()), kReasonServerStopping);
  EXPECT_EQ(ReasonOf(models().Get("n").status()), kReasonModelNotFound);
  EXPECT_EQ(ReasonOf(Load("o").status()), kReasonServerStopping);
}

TEST_F(ModelsTest, ListenersHearEveryState) {
  class Listener final : public StateListener {
   public:
    void OnModelState(const wan::v1::Model& model) override { states.push_back(model.state()); }
    std::vector<int> states;
  } listener;
  Close();
  options_.listeners = {&listener};
  Open(/*load=*/false);
  engine_->FailAt("Model_Initialization", absl::InternalError("x"));
  EXPECT_FALSE(Load("m").ok());
  ASSERT_TRUE(Load("m").ok());
  ASSERT_TRUE(Unload("m").ok());
  Close();
  EXPECT_THAT(listener.states,
              ElementsAre(MODEL_STATE_LOADING, MODEL_STATE_FAILED, MODEL_STATE_LOADING,
                          MODEL_STATE_READY, MODEL_STATE_UNLOADED));
}

}  // namespace
}  // namespace wan::server
