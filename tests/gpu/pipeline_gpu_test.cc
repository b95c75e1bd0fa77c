// The golden runs, from the request to the files, on a GPU. The same checks run on the CPU in
// tests/engine/pipeline/golden_pipeline_precision_test.cc.
#include <gtest/gtest.h>

#include "tests/engine/golden_pipeline.h"

namespace wan {
namespace {

const at::Device kGpu(at::kCUDA, 0);

class PipelineGpuTest : public testing::TestWithParam<std::string> {};

TEST_P(PipelineGpuTest, Fp32) { ExpectGoldenPipeline(GetParam(), kGpu, at::kFloat); }

TEST_P(PipelineGpuTest, Bf16) { ExpectGoldenPipeline(GetParam(), kGpu, at::kBFloat16); }

INSTANTIATE_TEST_SUITE_P(All, PipelineGpuTest, testing::ValuesIn(GoldenPipelineIds()));

}  // namespace
}  // namespace wan
