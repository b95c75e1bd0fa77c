// What merging computes, tensor by tensor; whole transformers are in wan/lora_test.cc.
#include "engine/weights/lora_patch.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/device/torch_errors.h"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/random_tensor.h"

namespace wan {
namespace {

StoredTensor Stored(const at::Tensor& tensor) {
  StoredTensor stored;
  stored.dtype = tensor.scalar_type() == at::kFloat ? DType::kFloat32 : DType::kBFloat16;
  stored.shape = tensor.sizes().vec();
  stored.bytes = {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
  return stored;
}

// One component of one matrix, and LoRAs for it.
class LoraPatchTest : public ::testing::Test {
 protected:
  void SetMatrix(const at::Tensor& matrix) {
    matrix_ = matrix;
    weights_ = std::make_unique<ComponentWeights>(MakeWeightMover(at::kCPU),
                                                  ComponentWeights::Home::kDevice);
    weights_->Add(matrix_);
    weights_->Name("w", matrix_);
    weights_->FinishBuilding();
  }

  std::shared_ptr<const LoraWeights> Lora(const at::Tensor& up, const at::Tensor& down,
                                          double factor, const std::string& target = "w") {
    LoraFile file;
    LoraTerm& term = file.terms.emplace_back();
    term.target = target;
    term.rows = up.size(0);
    term.columns = down.size(1);
    term.first = {.rows = term.rows,
                  .columns = term.columns,
                  .rank = up.size(1),
                  .up = Stored(up),
                  .down = Stored(down)};
    term.factor = factor;
    return LoraWeights::Load(file, weights_->mover(), stop_.get_token());
  }

  void Apply(const std::vector<ScaledLora>& loras) {
    weights_->SetPatch(MakeLoraPatch(*weights_, loras));
    weights_->Use(0, 0);
  }

  at::Tensor matrix_;
  std::unique_ptr<ComponentWeights> weights_;
  std::stop_source stop_;
};

TEST_F(LoraPatchTest, AStopRequestEndsTheLoadingOfFactors) {
  SetMatrix(RandomTensor({4, 4}, 1));
  stop_.request_stop();
  const at::Tensor factors = RandomTensor({4, 4}, 2);
  EXPECT_EQ(CatchTorchErrors("loading",
                             [&] {
                               Lora(factors, factors, 1);
                               return absl::OkStatus();
                             })
                .code(),
            absl::StatusCode::kCancelled);
}

// Rounding to bf16 after every LoRA would lose what is less than half a step.
TEST_F(LoraPatchTest, SumsInFp32AndRoundsOnce) {
  SetMatrix(RandomTensor({31, 17}, 1).to(at::kBFloat16));
  const at::Tensor base = matrix_.clone();
  std::vector<ScaledLora> loras;
  at::Tensor exact = base.to(at::kDouble);
  for (uint64_t i = 0; i < 8; ++i) {
    const at::Tensor up = RandomTensor({31, 3}, 10 + i, at::kFloat, 0.02, 0.01);
    const at::Tensor down = RandomTensor({3, 17}, 20 + i, at::kFloat, 0.02, 0.01);
    loras.push_back({Lora(up, down, 0.5), 1.5});
    exact = exact + at::matmul(up.to(at::kDouble), down.to(at::kDouble)) * 0.75;
  }
  Apply(loras);
  // fp32 and fp64 may lie on different sides of the middle between two numbers, rarely.
  const at::Tensor differs = matrix_ != exact.to(at::kFloat).to(at::kBFloat16);
  EXPECT_LE(differs.sum().item<int64_t>(), 2);
  Apply({});
  EXPECT_TRUE(at::equal(matrix_, base));
}

TEST_F(LoraPatchTest, LargeMatricesArePatchedInParts) {
  constexpr int64_t kColumns = kPatchElements / 2 + 1;  // one row a part
  SetMatrix(at::zeros({3, kColumns}, at::TensorOptions().dtype(at::kBFloat16)));
  const at::Tensor up = RandomTensor({3, 2}, 1);
  const at::Tensor down = RandomTensor({2, kColumns}, 2);
  Apply({{Lora(up, down, 2), 0.5}});
  EXPECT_LE(RelativeError(matrix_.to(at::kFloat), at::matmul(up, down)), 4e-3);
  for (int64_t row = 0; row < 3; ++row) {
    EXPECT_GT(matrix_.select(0, row).abs().sum().item<double>(), 0) << "row " << row;
  }
}

TEST_F(LoraPatchTest, NothingToDoIsNoPatch) {
  SetMatrix(RandomTensor({4, 4}, 1));
  EXPECT_EQ(MakeLoraPatch(*weights_, {}), nullptr);
  const auto lora = Lora(RandomTensor({4, 1}, 2), RandomTensor({1, 4}, 3), 1);
  const std::vector<ScaledLora> silent = {{lora, 0}};
  EXPECT_EQ(MakeLoraPatch(*weights_, silent), nullptr);
}

TEST_F(LoraPatchTest, ATensorThatTheComponentHasNot) {
  SetMatrix(RandomTensor({4, 4}, 1));
  const std::vector<ScaledLora> foreign = {
      {Lora(RandomTensor({4, 1}, 2), RandomTensor({1, 4}, 3), 1, "v"), 1}};
  EXPECT_THROW(MakeLoraPatch(*weights_, foreign), c10::Error);
}

}  // namespace
}  // namespace wan
