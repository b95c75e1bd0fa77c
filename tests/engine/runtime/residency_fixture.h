// The engine on the golden checkpoints, with its weights wherever a test wants them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/engine_factory.h"
#include "tests/engine/engine_jobs.h"

namespace wan {

class SampleSink final : public TelemetrySink {
 public:
  void OnSample(const Sample& sample) override {
    if (sample.name == "component_memory_bytes") {
      bytes[sample.labels.at("model") + "/" + sample.labels.at("component")] = sample.value;
    }
  }
  std::map<std::string, double> bytes;  // the last value of each
};

// The folder of a golden checkpoint; an absolute path stays as it is.
inline std::string CheckpointPath(const std::string& name) {
  if (name.starts_with("/")) return name;
  return std::string(WAN_CHECKPOINT_DIR) + "/" + name + "/original";
}

class ResidencyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("residency_" + std::to_string(getpid()) +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::unique_ptr<Engine> MakeEngine(const std::vector<ComponentResidency>& residency,
                                            uint64_t limit = 0, size_t ranks = 1) {
    EngineOptions options;
    options.residency = residency;
    options.device_memory_limit = limit;
    return MakeEngineWith(options, ranks);
  }
  static std::unique_ptr<Engine> MakeEngineWith(const EngineOptions& options, size_t ranks = 1) {
    absl::StatusOr<std::unique_ptr<Engine>> engine =
        MakeWanEngine(std::vector<std::string>(ranks, "cpu"), options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    return *std::move(engine);
  }

  void Load(Engine& engine, const std::string& name, const std::string& checkpoint) {
    Recorder recorder(SystemClock(), engine.Monitor(), {&samples_});
    const absl::Status status = engine.LoadModel({name, CheckpointPath(checkpoint)}, recorder);
    ASSERT_TRUE(status.ok()) << status;
  }

  static GenerationRequest SmallRequest(const std::string& model) {
    GenerationRequest request;
    request.model = model;
    request.prompt = "A red cat.";
    request.width = 64;
    request.height = 32;
    request.num_frames = 5;
    request.steps = 3;
    request.seed = 3;
    return request;
  }

  // The bytes of the latents file.
  absl::StatusOr<std::string> Latents(Engine& engine, const GenerationRequest& request,
                                      TelemetrySink* sink = nullptr) {
    std::vector<TelemetrySink*> sinks = {&samples_};
    if (sink != nullptr) sinks.push_back(sink);
    return GenerateLatents(engine, request, folder_, sinks);
  }

  std::filesystem::path folder_;
  SampleSink samples_;
};

inline std::shared_ptr<const std::string> GoldenImage() {
  std::ifstream file(WAN_GOLDEN_DIR "/pipelines/ti2v-i2v.png", std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return std::make_shared<const std::string>(bytes.str());
}

}  // namespace wan
