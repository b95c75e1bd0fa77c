// The golden cases on a GPU: fp32 within rounding, bf16 no further off than upstream's own. Prints
// a table.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "engine/models/wan/transformer.h"
#include "engine/models/wan/umt5.h"
#include "tests/engine/golden_dit.h"
#include "tests/engine/golden_tensors.h"

namespace wan {
namespace {

constexpr double kFp32Tolerance = 2e-5;
constexpr double kUmt5Bf16Tolerance = 1e-2;

double TransformerError(const GoldenDitCase& golden, at::ScalarType dtype) {
  const Checkpoint& checkpoint = GoldenCheckpoint(golden.checkpoint + "/original");
  const auto transformer = LoadWanTransformer(checkpoint.transformer(golden.expert),
                                              checkpoint.transformer_config(golden.expert),
                                              {.device = at::Device(at::kCUDA, 0), .dtype = dtype})
                               .value();
  const auto text = transformer->PrepareText(golden.contexts).value();
  return RelativeError(transformer->Forward(golden.latents, golden.timestep, *text).value(),
                       golden.output);
}

TEST(GoldenGpu, TransformerOfTi2v5b) {
  int cases = 0;
  std::printf("%-24s %10s %10s %10s %10s\n", "case", "fp32", "allowed", "bf16", "allowed");
  for (const GoldenDitCase& golden : LoadGoldenDitCases()) {
    if (golden.checkpoint != "ti2v-5b") continue;
    ++cases;
    const double fp32 = TransformerError(golden, at::kFloat);
    const double bf16 = TransformerError(golden, at::kBFloat16);
    const double allowed = kBf16Slack * golden.bf16_error;
    std::printf("%-24s %10.2e %10.2e %10.2e %10.2e\n", golden.id.c_str(), fp32, kFp32Tolerance,
                bf16, allowed);
    EXPECT_LE(fp32, kFp32Tolerance) << golden.id;
    EXPECT_LE(bf16, allowed) << golden.id;
    // It is bf16 that ran.
    EXPECT_GT(bf16, 1e-4) << golden.id;
  }
  EXPECT_EQ(cases, 6);
}

TEST(GoldenGpu, Umt5) {
  const std::string file = "umt5/ti2v-5b.safetensors";
  const Checkpoint& checkpoint = GoldenCheckpoint("ti2v-5b/original");
  const auto error = [&](int golden, at::ScalarType dtype) {
    const at::Tensor ids = LoadGolden(file, "ids_" + std::to_string(golden)).to(at::kLong);
    const auto encoder = LoadUmt5(checkpoint.text_encoder(), checkpoint.text_encoder_config(),
                                  {.device = at::Device(at::kCUDA, 0), .dtype = dtype})
                             .value();
    return RelativeError(
        encoder->Encode({ids.const_data_ptr<int64_t>(), static_cast<size_t>(ids.numel())}).value(),
        LoadGolden(file, "hidden_" + std::to_string(golden)));
  };
  for (int golden = 0; golden < 4; ++golden) {
    const double fp32 = error(golden, at::kFloat);
    const double bf16 = error(golden, at::kBFloat16);
    std::printf("umt5/%-19d %10.2e %10.2e %10.2e %10.2e\n", golden, fp32, kFp32Tolerance, bf16,
                kUmt5Bf16Tolerance);
    EXPECT_LE(fp32, kFp32Tolerance) << golden;
    EXPECT_LE(bf16, kUmt5Bf16Tolerance) << golden;
  }
}

}  // namespace
}  // namespace wan
