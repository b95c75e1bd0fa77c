// The engine on a GPU for which this build has no kernels (fake_cuda_plugin.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/api/engine_factory.h"
#include "engine/runtime/load_plan.h"

namespace wan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(UncompiledGpuTest, TheEngineIsNotMadeAndSaysWhatToBuild) {
  const absl::Status status = MakeWanEngine({"cuda:0"}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("NVIDIA Tesla T4 has compute capability 7.5"),
                    HasSubstr("are for 80, 90a; build with -DWAN_CUDA_ARCHS=75")));
}

TEST(UncompiledGpuTest, ItHasNoProductsOfEightBits) {
  // Loads the plug-in.
  EXPECT_FALSE(MakeWanEngine({"cuda:0"}, {}).ok());
  const at::Device gpu(at::kCUDA, 0);
  EXPECT_EQ(WhyNoEightBits(at::kBFloat16, {gpu}),
            "on this device, whose compute capability 7.5 has no products of 8 bits (8.9 or higher "
            "has)");
  EXPECT_EQ(WhyNoEightBits(at::kFloat, {gpu}),
            "while the server's dtype is fp32; a GPU has products of 8 bits only for bf16");
  EXPECT_EQ(WhyNoEightBits(at::kFloat, {at::kCPU}), std::nullopt);
  EXPECT_EQ(WhyNoEightBits(at::kBFloat16, {at::kCPU, at::kCPU}), std::nullopt);
}

TEST(UncompiledGpuTest, AGpuThatIsNotThereIsNamedFirst) {
  EXPECT_THAT(std::string(MakeWanEngine({"cuda:1"}, {}).status().message()), HasSubstr("cuda:1"));
}

}  // namespace
}  // namespace wan
