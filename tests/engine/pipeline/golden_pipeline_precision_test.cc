// The golden runs with all that a GPU test checks (tests/gpu/pipeline_gpu_test.cc), on the CPU: in
// bf16, which nothing else runs whole, and in fp32 for the previews and for the test's own logic.
#include <gtest/gtest.h>

#include "tests/engine/golden_pipeline.h"

namespace wan {
namespace {

class GoldenPrecisionTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenPrecisionTest, Fp32) { ExpectGoldenPipeline(GetParam(), at::kCPU, at::kFloat); }

TEST_P(GoldenPrecisionTest, Bf16) { ExpectGoldenPipeline(GetParam(), at::kCPU, at::kBFloat16); }

INSTANTIATE_TEST_SUITE_P(All, GoldenPrecisionTest, testing::ValuesIn(GoldenPipelineIds()));

}  // namespace
}  // namespace wan
