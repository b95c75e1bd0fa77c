// LoRA, LoHa, LoKr and DoRA against what the formulas of PEFT and LyCORIS give
// (scripts/gen/lora_reference.py).
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "engine/checkpoint/lora_file.h"
#include "engine/formats/safetensors.h"
#include "engine/weights/component_weights.h"
#include "engine/weights/lora_change.h"
#include "engine/weights/lora_patch.h"
#include "engine/weights/lora_weights.h"
#include "engine/weights/weight_mover.h"
#include "tests/engine/checkpoint/lora_file_fixture.h"
#include "tests/engine/golden_tensors.h"

namespace wan {
namespace {

constexpr double kTolerance = 1e-6;
const std::string kFolder = WAN_ADAPTER_TESTDATA_DIR;

std::map<std::string, at::Tensor> ReadAll(const std::string& name) {
  const absl::StatusOr<TensorFile> file = ReadSafetensors(kFolder + "/" + name);
  if (!file.ok()) throw std::runtime_error(std::string(file.status().message()));
  std::map<std::string, at::Tensor> tensors;
  for (const StoredTensor& tensor : file->tensors) {
    const at::Tensor view =
        at::from_blob(const_cast<std::byte*>(tensor.bytes.data()), tensor.shape, at::kFloat);
    tensors[tensor.name] = view.clone();
  }
  return tensors;
}

// The weights of the tiny transformer that the adapters change, as one component.
class Tiny {
 public:
  Tiny() : tensors_(ReadAll("base.safetensors")) {
    for (const auto& [name, tensor] : tensors_) {
      weights_.Add(tensor);
      weights_.Name(name, tensor);
    }
    weights_.FinishBuilding();
  }

  ComponentWeights& weights() { return weights_; }
  const at::Tensor& Tensor(const std::string& name) const { return tensors_.at(name); }

  std::shared_ptr<const LoraWeights> Read(const std::string& adapter) {
    const bool is_folder = adapter.ends_with("_peft");
    const absl::StatusOr<LoraFile> file =
        ReadLoraFile(kFolder + "/" + adapter + (is_folder ? "" : ".safetensors"), SmallConfig());
    if (!file.ok()) throw std::runtime_error(std::string(file.status().message()));
    return LoraWeights::Load(*file, weights_.mover());
  }

 private:
  const std::map<std::string, at::Tensor> tensors_;
  ComponentWeights weights_{MakeWeightMover(at::kCPU), ComponentWeights::Home::kDevice};
};

TEST(AdapterGoldenTest, EveryKindIsMergedAsItsTrainerSays) {
  Tiny tiny;
  std::map<std::string, int> compared;
  for (const auto& [key, expected] : ReadAll("expected.safetensors")) {
    SCOPED_TRACE(key);
    const std::vector<std::string> parts = absl::StrSplit(key, absl::MaxSplits('/', 2));
    double scale = 0;
    ASSERT_TRUE(absl::SimpleAtod(parts[1], &scale));
    const std::vector<ScaledLora> chosen = {{tiny.Read(parts[0]), scale}};
    tiny.weights().SetPatch(MakeLoraPatch(tiny.weights(), chosen));
    tiny.weights().Use(0, 0);
    EXPECT_LE(RelativeError(tiny.Tensor(parts[2]), expected), kTolerance);
    ++compared[parts[0]];
  }
  EXPECT_EQ(compared.size(), 9U) << "an adapter is missing";
  tiny.weights().SetPatch(nullptr);
  tiny.weights().Use(0, 0);
  for (const auto& [name, base] : ReadAll("base.safetensors")) {
    EXPECT_TRUE(at::equal(tiny.Tensor(name), base)) << name;
  }
}

// Large matrices are changed some rows at a time, whose number fits no side of a LoKr.
TEST(AdapterGoldenTest, PartsGiveWhatTheWholeGives) {
  Tiny tiny;
  const std::map<std::string, at::Tensor> all = ReadAll("expected.safetensors");
  for (const char* const adapter :
       {"loha", "lokr", "lokr_peft", "dora_peft", "dora_of_rows", "dora_of_columns"}) {
    const auto weights = tiny.Read(adapter);
    for (const LoraWeights::Term& term : weights->terms()) {
      SCOPED_TRACE(std::string(adapter) + " " + term.target);
      const at::Tensor base = tiny.Tensor(term.target).flatten(1);
      const auto rows = [&](int64_t first, int64_t count) {
        return base.narrow(0, first, count).clone();
      };
      constexpr int64_t kStep = 3;
      const std::vector<LoraAddition> additions = {{&term, 0.5}};
      const LoraChange change(additions, base.size(0), kStep, at::kCPU, rows);
      std::vector<at::Tensor> parts;
      for (int64_t first = 0; first < base.size(0); first += kStep) {
        parts.push_back(rows(first, std::min(kStep, base.size(0) - first)));
        change.AddTo(parts.back(), first);
      }
      const at::Tensor& expected = all.at(std::string(adapter) + "/0.5/" + term.target);
      EXPECT_LE(RelativeError(at::cat(parts), expected.flatten(1)), kTolerance);
    }
  }
}

// Each is added to the base, so their order and number do not matter.
TEST(AdapterGoldenTest, AdaptersOfSeveralKindsAreSummed) {
  Tiny tiny;
  const std::map<std::string, at::Tensor> all = ReadAll("expected.safetensors");
  const std::map<std::string, at::Tensor> base = ReadAll("base.safetensors");
  const std::string target = "blocks.0.self_attn.q.weight";
  at::Tensor expected = base.at(target).to(at::kDouble);
  std::vector<ScaledLora> chosen;
  for (const char* const adapter : {"loha", "dora_of_columns", "lokr", "dora_peft"}) {
    expected = expected + (all.at(std::string(adapter) + "/0.5/" + target) - base.at(target));
    chosen.push_back({tiny.Read(adapter), 0.5});
  }
  tiny.weights().SetPatch(MakeLoraPatch(tiny.weights(), chosen));
  tiny.weights().Use(0, 0);
  EXPECT_LE(RelativeError(tiny.Tensor(target), expected), kTolerance);
}

}  // namespace
}  // namespace wan
