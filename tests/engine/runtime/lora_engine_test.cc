// LoRAs through the engine: under every policy, one expert or both, and the base's own weights
// before and after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/api/engine_factory.h"
#include "engine/api/errors.h"
#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/engine_jobs.h"
#include "tests/engine/formats/files.h"
#include "tests/engine/golden_dit.h"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/lora_fixture.h"
#include "tests/support/failing_allocator.h"

namespace wan {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TempFolder;
using Policy = ResidencyPolicy;

class StageSink final : public TelemetrySink {
 public:
  void OnSpanEnd(const SpanRecord& record) override { stages.push_back(NameOf(record.stage)); }
  std::vector<std::string> stages;
};

GenerationRequest Request(std::vector<LoraScale> loras = {}) {
  GenerationRequest request;
  request.model = "m";
  request.prompt = "A red cat.";
  request.width = 32;
  request.height = 32;
  request.num_frames = 1;
  request.steps = 2;
  request.shift = 1;  // so that each of two experts has a step
  request.seed = 3;
  request.loras = std::move(loras);
  return request;
}

class LoraEngineTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Engine> MakeEngine(Policy policy = Policy::kResident,
                                            const std::string& dtype = "fp32") {
    EngineOptions options;
    options.dtype = dtype;
    for (const ModelComponent component : kModelComponents) {
      options.residency.push_back({component, policy});
    }
    absl::StatusOr<std::unique_ptr<Engine>> engine = MakeWanEngine({"cpu"}, options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    return *std::move(engine);
  }

  static absl::Status TryLoad(Engine& engine, const std::string& checkpoint,
                              std::vector<LoraSource> loras) {
    Recorder recorder(SystemClock(), engine.Monitor(), {});
    return engine.LoadModel({"m", CheckpointDir() + "/" + checkpoint + "/original", loras},
                            recorder);
  }

  static void Load(Engine& engine, const std::string& checkpoint, std::vector<LoraSource> loras) {
    const absl::Status status = TryLoad(engine, checkpoint, std::move(loras));
    ASSERT_TRUE(status.ok()) << status;
  }

  // A random LoRA's file for the transformers of a golden checkpoint.
  std::string File(const std::string& checkpoint, uint64_t seed) {
    const TransformerConfig& config =
        GoldenCheckpoint(checkpoint + "/original").transformer_config();
    const std::string folder = (folder_ / (checkpoint + std::to_string(seed))).string();
    std::filesystem::create_directories(folder);
    return TestLora::Random(config, /*rank=*/4, seed).Write(folder, LoraStyle::kComfy);
  }

  absl::StatusOr<std::string> Latents(Engine& engine, const GenerationRequest& request,
                                      TelemetrySink* sink = nullptr) {
    std::vector<TelemetrySink*> sinks;
    if (sink != nullptr) sinks.push_back(sink);
    return GenerateLatents(engine, request, folder_.string(), sinks);
  }

  std::string MustGive(Engine& engine, const GenerationRequest& request,
                       TelemetrySink* sink = nullptr) {
    const absl::StatusOr<std::string> latents = Latents(engine, request, sink);
    EXPECT_TRUE(latents.ok()) << latents.status();
    return latents.value_or("");
  }

  static int Mergings(const StageSink& sink) {
    return static_cast<int>(std::count(sink.stages.begin(), sink.stages.end(), "LoRA_Merging"));
  }

  TempFolder folder_;
};

// On one device and on two, whose second has its own copy of the transformers.
TEST_F(LoraEngineTest, WeightsInEightBitsGiveTheBitsOfRoundingMergedOnes) {
  for (const size_t devices : {1, 2}) {
    SCOPED_TRACE(devices);
    const auto make = [&](bool keeps_rounded) {
      EngineOptions options;
      options.quality = Quality::kHigh;
      options.eight_bit_weights.transformers = keeps_rounded;
      auto engine = MakeWanEngine(std::vector<std::string>(devices, "cpu"), options);
      EXPECT_TRUE(engine.ok()) << engine.status();
      Load(**engine, "t2v-a14b", {{"style", std::nullopt, File("t2v-a14b", 1)}});
      return *std::move(engine);
    };
    const auto whole = make(false);
    const auto kept = make(true);
    const std::string base = MustGive(*whole, Request());
    const std::string styled = MustGive(*whole, Request({{"style", 0.7}}));
    EXPECT_NE(styled, base);
    for (int job = 0; job < 2; ++job) {
      EXPECT_EQ(MustGive(*kept, Request({{"style", 0.7}})), styled);
      EXPECT_EQ(MustGive(*kept, Request()), base);
    }
  }
}

TEST_F(LoraEngineTest, EveryPolicyGivesTheSameAndLeavesTheBaseAsItWas) {
  for (const char* const checkpoint : {"ti2v-5b", "t2v-a14b"}) {
    const std::vector<LoraSource> loras = {{"a", std::nullopt, File(checkpoint, 1)},
                                           {"b", std::nullopt, File(checkpoint, 2)}};
    const std::vector<GenerationRequest> requests = {
        Request({{"a", 1}}), Request({{"a", 0.5}, {"b", -1}}), Request({{"b", 1}})};
    std::optional<std::string> base;
    std::vector<std::string> expected(requests.size());
    for (const Policy policy : {Policy::kResident, Policy::kHost, Policy::kStream, Policy::kCpu}) {
      SCOPED_TRACE(std::string(checkpoint) + " " + std::string(ResidencyPolicyName(policy)));
      const auto plain = MakeEngine(policy);
      Load(*plain, checkpoint, {});
      const auto engine = MakeEngine(policy);
      Load(*engine, checkpoint, loras);
      const std::string without = MustGive(*plain, Request());
      if (!base.has_value()) base = without;
      EXPECT_TRUE(without == *base);
      EXPECT_TRUE(MustGive(*engine, Request()) == *base) << "registered, but not asked for";
      for (size_t i = 0; i < requests.size(); ++i) {
        const std::string latents = MustGive(*engine, requests[i]);
        if (expected[i].empty()) expected[i] = latents;
        EXPECT_TRUE(latents == expected[i]) << i;
        EXPECT_FALSE(latents == *base) << i;
      }
      EXPECT_FALSE(expected[0] == expected[1] || expected[1] == expected[2]);
      EXPECT_TRUE(MustGive(*engine, Request({{"a", 0}})) == *base) << "a scale of 0";
      EXPECT_TRUE(MustGive(*engine, requests[0]) == expected[0]) << "again, after the others";
      EXPECT_TRUE(MustGive(*engine, Request()) == *base) << "the base after all of them";
    }
  }
}

TEST_F(LoraEngineTest, WhatIsMergedStaysUntilAnotherChoice) {
  const auto engine = MakeEngine();
  Load(*engine, "t2v-a14b",
       {{"a", std::nullopt, File("t2v-a14b", 1)},
        {"b", ExpertRole::kLowNoise, File("t2v-a14b", 2)}});
  const auto mergings = [&](std::vector<LoraScale> loras) {
    StageSink sink;
    MustGive(*engine, Request(std::move(loras)), &sink);
    return Mergings(sink);
  };
  EXPECT_EQ(mergings({}), 0);
  EXPECT_EQ(mergings({{"a", 1}}), 2) << "both experts";
  EXPECT_EQ(mergings({{"a", 1}}), 0) << "the same again";
  EXPECT_EQ(mergings({{"a", 1}, {"b", 0}}), 0) << "nothing else";
  EXPECT_EQ(mergings({{"a", 1}, {"b", 1}}), 1) << "the low-noise expert's";
  EXPECT_EQ(mergings({}), 2) << "both experts' base";
}

// Each engine has its own policies and its own jobs before a request; none of it shows.
TEST_F(LoraEngineTest, RandomChoicesOverRandomPoliciesGiveWhatResidentGives) {
  constexpr int kRequests = 50;
  constexpr int kEngines = 5;
  constexpr Policy kPolicies[] = {Policy::kAuto, Policy::kResident, Policy::kHost, Policy::kStream,
                                  Policy::kCpu};
  std::mt19937 random(20261122);
  const auto pick = [&](int count) { return static_cast<int>(random() % count); };
  const std::vector<LoraSource> loras = {{"a", std::nullopt, File("t2v-a14b", 1)},
                                         {"b", ExpertRole::kHighNoise, File("t2v-a14b", 2)},
                                         {"c", ExpertRole::kLowNoise, File("t2v-a14b", 3)}};
  const std::vector<std::vector<LoraScale>> choices = {
      {}, {{"a", 1}}, {{"b", 1}}, {{"b", -0.5}, {"c", 2}}, {{"c", 2}, {"b", -0.5}, {"a", 0.25}}};
  std::vector<std::string> expected;
  for (const std::vector<LoraScale>& choice : choices) {
    const auto fresh = MakeEngine();
    Load(*fresh, "t2v-a14b", loras);
    expected.push_back(MustGive(*fresh, Request(choice)));
  }
  std::vector<std::unique_ptr<Engine>> engines;
  for (int i = 0; i < kEngines; ++i) {
    EngineOptions options;
    for (const ModelComponent component : kModelComponents) {
      options.residency.push_back({component, kPolicies[pick(5)]});
    }
    engines.push_back(MakeWanEngine({"cpu"}, options).value());
    Load(*engines.back(), "t2v-a14b", loras);
  }
  for (int i = 0; i < kRequests; ++i) {
    const int choice = pick(static_cast<int>(choices.size()));
    Engine& engine = *engines[pick(kEngines)];
    ASSERT_TRUE(MustGive(engine, Request(choices[choice])) == expected[choice]) << "request " << i;
  }
}

TEST_F(LoraEngineTest, FilesOfOneNameAreAPair) {
  const std::string one = File("t2v-a14b", 1);
  const std::string other = File("t2v-a14b", 2);
  const auto engine = MakeEngine();
  Load(*engine, "t2v-a14b",
       {{"both", std::nullopt, one},
        {"other", std::nullopt, other},
        {"high", ExpertRole::kHighNoise, one},
        {"low", ExpertRole::kLowNoise, other},
        {"pair", ExpertRole::kHighNoise, one},
        {"pair", ExpertRole::kLowNoise, other}});
  const std::string pair = MustGive(*engine, Request({{"pair", 1}}));
  EXPECT_TRUE(MustGive(*engine, Request({{"high", 1}, {"low", 1}})) == pair);
  for (const char* const name : {"both", "other", "high", "low"}) {
    EXPECT_FALSE(MustGive(*engine, Request({{name, 1}})) == pair) << name;
  }

  const ModelDescription model = engine->Models().front();
  ASSERT_EQ(model.loras.size(), 5u);
  EXPECT_EQ(model.loras[0].name, "both");
  ASSERT_EQ(model.loras[0].parts.size(), 2u);
  EXPECT_EQ(model.loras[0].parts[1].expert, ExpertRole::kLowNoise);
  EXPECT_EQ(model.loras[0].parts[1].rank, 4);
  EXPECT_GT(model.loras[0].parts[1].tensors, 10);
  ASSERT_EQ(model.loras[2].parts.size(), 1u);
  EXPECT_EQ(model.loras[2].parts[0].expert, ExpertRole::kHighNoise);
  EXPECT_EQ(model.loras[2].parts[0].path, one);
  EXPECT_EQ(model.loras[2].host_bytes, model.loras[0].host_bytes) << "one file, shared or not";
  EXPECT_EQ(model.loras[4].host_bytes, 2 * model.loras[0].host_bytes);
}

TEST_F(LoraEngineTest, BadRegistrationsLeaveNoModelBehind) {
  const std::string good = File("ti2v-5b", 1);
  const std::string foreign = File("t2v-a14b", 1);
  const struct {
    const char* what;
    std::vector<LoraSource> loras;
    absl::StatusCode code;
    std::vector<std::string> says;
  } cases[] = {
      {"no file",
       {{"x", std::nullopt, "/nowhere/x.safetensors"}},
       absl::StatusCode::kNotFound,
       {"LoRA 'x'", "/nowhere/x.safetensors"}},
      {"another model's",
       {{"x", std::nullopt, foreign}},
       absl::StatusCode::kInvalidArgument,
       {"LoRA 'x'", foreign}},
      {"an expert it has not",
       {{"x", ExpertRole::kHighNoise, good}},
       absl::StatusCode::kInvalidArgument,
       {"LoRA 'x'", "'high'", "only"}},
      {"two files for one",
       {{"x", std::nullopt, good}, {"x", std::nullopt, good}},
       absl::StatusCode::kInvalidArgument,
       {"LoRA 'x'", "two files", good}},
  };
  const auto engine = MakeEngine();
  for (const auto& bad : cases) {
    SCOPED_TRACE(bad.what);
    const absl::Status status = TryLoad(*engine, "ti2v-5b", bad.loras);
    EXPECT_EQ(status.code(), bad.code) << status;
    for (const std::string& text : bad.says) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    }
    EXPECT_THAT(engine->Models(), IsEmpty());
  }
}

// The checkpoint is gone by then, and jobs still have the same bits.
TEST_F(LoraEngineTest, LorasComeAndGoWithoutReadingTheModelAgain) {
  for (const char* const checkpoint : {"ti2v-5b", "t2v-a14b"}) {
    for (const Policy policy : {Policy::kResident, Policy::kHost, Policy::kStream}) {
      SCOPED_TRACE(std::string(checkpoint) + " " + std::string(ResidencyPolicyName(policy)));
      const LoraSource a = {"a", std::nullopt, File(checkpoint, 1)};
      const LoraSource b = {"b", std::nullopt, File(checkpoint, 2)};
      const auto both = MakeEngine(policy);
      Load(*both, checkpoint, {a, b});
      const std::string base = MustGive(*both, Request());
      const std::string styled = MustGive(*both, Request({{"a", 1}, {"b", 0.5}}));

      const std::filesystem::path link = folder_ / "model";
      std::filesystem::create_directory_symlink(CheckpointDir() + "/" + checkpoint + "/original",
                                                link);
      const auto engine = MakeEngine(policy);
      const auto load = [&](std::vector<LoraSource> loras) {
        Recorder recorder(SystemClock(), engine->Monitor(), {});
        return engine->LoadModel({"m", link.string(), std::move(loras)}, recorder);
      };
      ASSERT_TRUE(load({}).ok());
      ASSERT_TRUE(engine->Warmup("m", {}).ok());
      std::filesystem::remove(link);
      EXPECT_TRUE(MustGive(*engine, Request()) == base);
      ASSERT_TRUE(load({a}).ok());
      MustGive(*engine, Request({{"a", 1}}));
      // What is merged goes on with the next choice.
      std::filesystem::rename(a.path, a.path + ".moved");
      EXPECT_EQ(load({a, b}).code(), absl::StatusCode::kNotFound) << "the file is gone";
      EXPECT_EQ(engine->Models().front().loras.size(), 1u) << "and nothing has changed";
      std::filesystem::rename(a.path + ".moved", a.path);
      ASSERT_TRUE(load({a, b}).ok());
      EXPECT_TRUE(MustGive(*engine, Request({{"a", 1}, {"b", 0.5}})) == styled);
      const absl::Status bad = load({a, {"c", ExpertRole::kOnly, "/nowhere"}});
      EXPECT_FALSE(bad.ok());
      EXPECT_TRUE(MustGive(*engine, Request({{"a", 1}, {"b", 0.5}})) == styled);
      ASSERT_TRUE(load({}).ok());
      EXPECT_TRUE(MustGive(*engine, Request()) == base) << "merged LoRAs are taken out";
      EXPECT_FALSE(engine->Plan(Request({{"a", 1}})).ok());
      EXPECT_FALSE(engine->Models().front().warm_shapes.empty());
      std::filesystem::remove(link);
    }
  }
}

// Notes what a load records, and may ask for a stop when it begins.
class LoadSink final : public TelemetrySink {
 public:
  void OnSpanStart(const SpanStart&) override {
    if (stops) stop.request_stop();
  }
  void OnSpanEnd(const SpanRecord& record) override {
    for (const SpanPart& part : record.parts) parts.push_back(part.name);
  }
  void OnSample(const Sample& sample) override { samples.push_back(sample.name); }

  bool stops = false;
  std::stop_source stop;
  std::vector<std::string> parts;
  std::vector<std::string> samples;
};

TEST_F(LoraEngineTest, OtherLorasAreRecordedAndStoppedLikeALoad) {
  const LoraSource a = {"a", std::nullopt, File("t2v-a14b", 1)};
  const auto engine = MakeEngine();
  const auto load = [&](std::vector<LoraSource> loras, LoadSink& sink) {
    Recorder recorder(SystemClock(), engine->Monitor(), {&sink});
    return engine->LoadModel({"m", CheckpointDir() + "/t2v-a14b/original", std::move(loras)},
                             recorder, sink.stop.get_token());
  };
  LoadSink first;
  ASSERT_TRUE(load({}, first).ok());
  LoadSink added;
  ASSERT_TRUE(load({a}, added).ok());
  EXPECT_THAT(added.parts, ElementsAre("loras"));
  const auto memory =
      std::count(added.samples.begin(), added.samples.end(), "component_memory_bytes");
  EXPECT_EQ(memory, 4) << "of text encoder, both experts and autoencoder";

  // Nothing of these files is read: one is resident, and the stop comes before the other.
  for (const std::vector<LoraSource>& loras :
       {std::vector{a}, std::vector{a, {"b", std::nullopt, File("t2v-a14b", 2)}}}) {
    LoadSink stopped;
    stopped.stops = true;
    const absl::Status status = load(loras, stopped);
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_THAT(stopped.samples, Contains("stop_seconds"));
    ASSERT_EQ(engine->Models().size(), 1u);
    EXPECT_EQ(engine->Models().front().loras.size(), 1u) << "it keeps the LoRA that it had";
  }
  EXPECT_FALSE(MustGive(*engine, Request({{"a", 1}})).empty());
}

TEST_F(LoraEngineTest, EachExpertHasItsScale) {
  const std::string file = File("t2v-a14b", 1);
  const auto engine = MakeEngine();
  Load(*engine, "t2v-a14b", {{"both", std::nullopt, file}, {"high", ExpertRole::kHighNoise, file}});
  const std::string high = MustGive(*engine, Request({{"high", 0.5}}));
  LoraScale split = {"both"};
  split.high_scale = 0.5;
  split.low_scale = 0;
  EXPECT_TRUE(MustGive(*engine, Request({split})) == high);
  split.low_scale = std::nullopt;
  EXPECT_FALSE(MustGive(*engine, Request({split})) == high);
}

TEST_F(LoraEngineTest, FilesThatTheServerFoundAreSkippedIfTheyDoNotFit) {
  const auto found = [](const std::string& name, std::optional<ExpertRole> expert,
                        const std::string& path) {
    LoraSource source = {name, expert, path};
    source.found = true;
    return source;
  };
  const std::string good = File("t2v-a14b", 1);
  const auto engine = MakeEngine();
  Load(*engine, "t2v-a14b",
       {found("foreign", std::nullopt, File("ti2v-5b", 1)), found("good", std::nullopt, good),
        found("half", ExpertRole::kHighNoise, good),
        found("half", ExpertRole::kLowNoise, "/nowhere")});
  const ModelDescription model = engine->Models().front();
  ASSERT_EQ(model.loras.size(), 1u);
  EXPECT_EQ(model.loras[0].name, "good");
  ASSERT_EQ(model.skipped_loras.size(), 3u) << "both files of a pair";
  EXPECT_EQ(model.skipped_loras[0].name, "foreign");
  EXPECT_EQ(model.skipped_loras[0].error.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(model.skipped_loras[1].path, good);
  EXPECT_THAT(std::string(model.skipped_loras[2].error.message()), HasSubstr("/nowhere"));
}

TEST_F(LoraEngineTest, APublishedFewStepLoraBringsItsSteps) {
  const std::string path = File("t2v-a14b", 1);
  const std::filesystem::path folder = folder_ / "Wan2.2-Lightning-4steps";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(path, folder / "high_noise_model.safetensors");
  const LoraSource fast = {"fast", std::nullopt,
                           (folder / "high_noise_model.safetensors").string()};
  const auto engine = MakeEngine();
  Load(*engine, "t2v-a14b", {fast});
  LoraDescription described = engine->Models().front().loras.front();
  EXPECT_TRUE(described.is_recognised);
  EXPECT_EQ(described.schedule, (LoraSchedule{.steps = 4, .shift = 5, .boundary_step = 2}));
  GenerationRequest request = Request({{"fast", 1}});
  request.steps = std::nullopt;
  request.shift = std::nullopt;
  EXPECT_EQ(engine->Plan(request)->steps.size(), 4u);
  EXPECT_FALSE(MustGive(*engine, request).empty());

  LoraSource other = fast;
  other.schedule = LoraSchedule{.steps = 0};
  Load(*engine, "t2v-a14b", {other});
  described = engine->Models().front().loras.front();
  EXPECT_FALSE(described.schedule.has_value()) << "somebody said that it has none";
  EXPECT_GT(engine->Plan(request)->steps.size(), 4u);
  other.schedule = LoraSchedule{.steps = 2000};
  const absl::Status refused = TryLoad(*engine, "t2v-a14b", {other});
  EXPECT_THAT(std::string(refused.message()), HasSubstr("LoRA 'fast': schedule.steps is 2000"));
}

TEST_F(LoraEngineTest, EveryAllocationOfTheMergingMayFail) {
  FailingAllocator allocator;
  for (const auto& [policy, stage] : {std::pair(Policy::kResident, StageKind::kLoraMerging),
                                      std::pair(Policy::kStream, StageKind::kStepInference)}) {
    SCOPED_TRACE(NameOf(stage));
    // In bf16 sums need memory of their own.
    const auto engine = MakeEngine(policy, "bf16");
    Load(*engine, "ti2v-5b", {{"a", std::nullopt, File("ti2v-5b", 1)}});
    const std::string base = MustGive(*engine, Request());
    const std::string with = MustGive(*engine, Request({{"a", 1}}));
    MustGive(*engine, Request());
    StageFault count(allocator, stage, StageFault::kNever);
    MustGive(*engine, Request({{"a", 1}}), &count);
    ASSERT_GT(count.allocations(), 10);
    bool with_next = false;
    for (int64_t n = 1; n <= count.allocations(); n += 1 + count.allocations() / 15) {
      MustGive(*engine, Request());
      StageFault fault(allocator, stage, n);
      const auto failed = Latents(*engine, Request({{"a", 1}}), &fault);
      allocator.Disarm();
      EXPECT_EQ(ReasonOf(failed.status()), "OUT_OF_MEMORY") << n;
      // A half-merged group must not be taken for either.
      with_next = !with_next;
      ASSERT_TRUE(MustGive(*engine, with_next ? Request({{"a", 1}}) : Request()) ==
                  (with_next ? with : base))
          << "after " << n;
    }
  }
}

TEST_F(LoraEngineTest, RequestsNameWhatIsWrong) {
  const auto engine = MakeEngine();
  Load(*engine, "ti2v-5b", {{"a", std::nullopt, File("ti2v-5b", 1)}});
  const auto refused = engine->Plan(Request({{"a", 1}, {"nobody", 100}, {"a", 2}}));
  std::vector<std::string> fields;
  for (const FieldViolation& violation : FieldViolationsOf(refused.status())) {
    fields.push_back(violation.field);
  }
  EXPECT_THAT(fields, ElementsAre("loras[1].name", "loras[1].scale", "loras[2].name"));
  EXPECT_EQ(FieldViolationsOf(refused.status())[0].description,
            "'nobody' is not a LoRA of model 'm', whose LoRAs are: a");
}

}  // namespace
}  // namespace wan
