// The engine's bits on a CPU change together with kComputeRevision, or not at all.
//
// compute_revision.txt beside this file has a line "REVISION NAME DIGEST" for each job of Cases.
// Whoever changes numerics on purpose changes the number in engine/api/compute_revision.h, runs
// this test with WAN_WRITE_COMPUTE_REVISION=1, and commits the file with the change.
#include "engine/api/compute_revision.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/formats/latents_file.h"
#include "engine/pipeline/latents_input.h"
#include "engine/runtime/canary.h"
#include "tests/engine/formats/files.h"
#include "tests/engine/golden_dit.h"
#include "tests/engine/lora_fixture.h"
#include "tests/engine/media/video_file.h"
#include "tests/engine/runtime/residency_fixture.h"

namespace wan {
namespace {

// Libraries choose kernels by the processor. These settings, which they read at their first use,
// choose those that give the same bits on every x86-64.
const bool kSameKernels = [] {
  ::setenv("ATEN_CPU_CAPABILITY", "default", 1);
  ::setenv("MKL_CBWR", "COMPATIBLE", 1);
  ::setenv("MKL_NUM_THREADS", "1", 1);
  ::setenv("ONEDNN_MAX_CPU_ISA", "SSE41", 1);
  return true;
}();

using Digests = std::map<std::string, std::string>;

// What the libraries alone compute, without any code of the engine.
std::string DigestOfLibraries() {
  const at::Tensor wave =
      at::arange(2 * 16 * 4 * 8 * 8, at::TensorOptions().dtype(at::kFloat)).mul(0.37).sin();
  const at::Tensor video = wave.view({2, 16, 4, 8, 8});
  const at::Tensor rows = wave.view({128, 64});
  const at::Tensor kernel = wave.narrow(0, 0, 8 * 16 * 27).view({8, 16, 3, 3, 3});
  const at::Tensor results[] = {at::conv3d(video, kernel).flatten(),
                                at::linear(rows, rows.narrow(0, 0, 32)).flatten(),
                                at::softmax(rows, 1).flatten(), at::exp(rows).flatten()};
  return DigestOf(at::cat(results));
}

class ComputeRevisionTest : public ResidencyTest {
 protected:
  // Adds the digests of the job's latents and frames.
  void Add(const std::string& name, const std::string& path, const GenerationRequest& request,
           const EngineOptions& options = {}, const std::vector<LoraSource>& loras = {}) {
    SCOPED_TRACE(name);
    EngineOptions one_thread = options;
    one_thread.cpu_threads = 1;
    const std::unique_ptr<Engine> engine = MakeEngineWith(one_thread);
    Recorder recorder(SystemClock(), engine->Monitor(), {});
    ASSERT_TRUE(engine->LoadModel({"m", path, loras}, recorder).ok());
    const absl::StatusOr<std::string> latents = Latents(*engine, request);
    ASSERT_TRUE(latents.ok()) << latents.status();
    digests_[name + ".latents"] = DigestOf(ToLatents(*FindLatents(*latents), at::kCPU));
    std::vector<int64_t> pixels;
    ReadVideo(folder_ / "video.mkv", [&](const AVFrame& frame) {
      for (int y = 0; y < frame.height; ++y) {
        const uint8_t* const row = frame.data[0] + int64_t{y} * frame.linesize[0];
        for (int x = 0; x < frame.width; ++x) {
          // Three colours, and a byte that nobody sets.
          pixels.insert(pixels.end(), row + int64_t{4} * x, row + int64_t{4} * x + 3);
        }
      }
    });
    ASSERT_FALSE(pixels.empty());
    digests_[name + ".frames"] = DigestOf(at::tensor(pixels));
  }

  static GenerationRequest Request(const std::string& solver) {
    GenerationRequest request = SmallRequest("m");
    request.solver = solver;
    request.outputs = {OutputKind::kLatents, OutputKind::kLosslessMkv};
    return request;
  }

  // The paths by which one device computes without tiles, except those from given latents.
  void AddAll() {
    for (const char* const solver : {"unipc", "dpm++", "euler", "lcm"}) {
      Add(absl::StrCat("solver_", solver), CheckpointPath("ti2v-5b"), Request(solver));
    }
    GenerationRequest request = Request("unipc");
    request.batched_guidance = false;
    Add("split_guidance", CheckpointPath("ti2v-5b"), request);
    request = Request("unipc");
    request.guidance_scale = {1};
    Add("no_guidance", CheckpointPath("ti2v-5b"), request);
    request = Request("unipc");
    request.image = GoldenImage();
    Add("image", CheckpointPath("ti2v-5b"), request);
    Add("image_as_condition", CheckpointPath("i2v-a14b"), request);
    request = Request("unipc");
    request.shift = 1;  // so that each expert has steps
    Add("two_experts", CheckpointPath("t2v-a14b"), request);
    request.quality = Quality::kHigh;
    Add("eight_bits", CheckpointPath("t2v-a14b"), request);
    request = Request("euler");
    EngineOptions bf16;
    bf16.dtype = "bf16";
    Add("bf16", CheckpointPath("ti2v-5b"), request, bf16);
    request.loras = {{.name = "style", .scale = 0.5}};
    const TransformerConfig& config = GoldenCheckpoint("ti2v-5b/original").transformer_config();
    const std::string lora = (folder_ / "lora").string();
    std::filesystem::create_directories(lora);
    Add("lora", CheckpointPath("ti2v-5b"), request, {},
        {{"style", std::nullopt,
          TestLora::Random(config, /*rank=*/4, /*seed=*/1).Write(lora, LoraStyle::kComfy)}});
    request = Request("unipc");
    request.vae_precision = VaePrecision::kBf16;
    Add("vae_bf16", CheckpointPath("ti2v-5b"), request);
    request = Request("unipc");
    request.decoder = Decoder::kTiny;
    Add("tiny_decoder",
        CheckpointPath("t2v-a14b") + ",tiny_decoder=" WAN_GOLDEN_DIR "/tiny/taew2_1.safetensors",
        request);
    request = Request("unipc");
    request.steps = 5;
    request.quality = Quality::kFast;
    Add("reused_blocks", WithRatios(), request);
  }

  // Returns the path of a model that reuses blocks in videos of quality `fast`.
  std::string WithRatios() const {
    const std::filesystem::path path = folder_ / "ratios";
    testing::LinkFolder(CheckpointPath("ti2v-5b"), path);
    testing::WriteFile(path / "step_ratios.json",
                       R"({"version": 1, "model": "ti2v-5b", "solver": "unipc", "steps": 3,
                           "shift": 5, "guidance_scale": [5], "experts": {"only": {
                           "conditional": [1, 1], "unconditional": [1, 1], "retained_share": 0}}})");
    return path.string();
  }

  Digests digests_;
};

struct Table {
  int revision = 0;
  std::string torch;      // the version of LibTorch
  std::string libraries;  // DigestOfLibraries
  Digests digests;
};

Table ReadTable() {
  Table table;
  std::ifstream file(WAN_COMPUTE_REVISIONS);
  for (std::string revision, name, digest; file >> revision >> name >> digest;) {
    table.revision = std::stoi(revision);
    if (name == "torch") {
      table.torch = digest;
    } else if (name == "libraries") {
      table.libraries = digest;
    } else {
      table.digests[name] = digest;
    }
  }
  return table;
}

void WriteTable(const Table& table) {
  std::ofstream file(WAN_COMPUTE_REVISIONS);
  file << table.revision << " torch " << table.torch << "\n";
  file << table.revision << " libraries " << table.libraries << "\n";
  for (const auto& [name, digest] : table.digests) {
    file << table.revision << " " << name << " " << digest << "\n";
  }
}

TEST_F(ComputeRevisionTest, TheBitsChangeOnlyWithTheNumber) {
  ASSERT_TRUE(kSameKernels);
  at::set_num_threads(1);
  const Table stored = ReadTable();
  Table now{kComputeRevision, TORCH_VERSION, DigestOfLibraries(), {}};
  // Another LibTorch computes other bits by itself; a provenance names it beside the revision.
  const bool same_torch = now.torch == stored.torch;
  if (same_torch && now.libraries != stored.libraries) {
    GTEST_SKIP() << "the libraries give other bits on this processor than on those of the table";
  }
  AddAll();
  ASSERT_FALSE(HasFailure());
  now.digests = digests_;
  const bool write = std::getenv("WAN_WRITE_COMPUTE_REVISION") != nullptr;
  const bool only_added = std::includes(now.digests.begin(), now.digests.end(),
                                        stored.digests.begin(), stored.digests.end());
  if (write && (now.revision > stored.revision || !same_torch || only_added)) {
    return WriteTable(now);
  }
  EXPECT_EQ(now.torch, stored.torch)
      << "run this test with WAN_WRITE_COMPUTE_REVISION=1 and commit the table";
  EXPECT_EQ(now.revision, stored.revision)
      << "run this test with WAN_WRITE_COMPUTE_REVISION=1 and commit the table";
  if (!same_torch || now.revision != stored.revision) return;
  EXPECT_EQ(now.digests, stored.digests)
      << "the engine computes other bits: undo that, or add one to kComputeRevision";
}

}  // namespace
}  // namespace wan
