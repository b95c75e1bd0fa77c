// A device that computes, and then is lost: the tests run in this order, and the last one breaks
// the process's context for good.
#include <ATen/DeviceAccelerator.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "engine/api/engine_factory.h"
#include "engine/api/errors.h"
#include "engine/device/torch_errors.h"
#include "engine/ops/fused_convolution.h"
#include "engine/ops/vae_cuda_ops.h"
#include "engine/runtime/canary.h"
#include "tests/gpu/trap.h"

namespace wan {
namespace {

const at::Device kGpu(at::kCUDA, 0);

TEST(DeviceLossGpuTest, ACanaryIsTheSameEachTime) {
  for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat}) {
    const auto once = RunDeviceCanary(kGpu, dtype);
    ASSERT_TRUE(once.ok()) << once.status();
    const auto again = RunDeviceCanary(kGpu, dtype);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(once->digest, again->digest);
    // For the log of scripts/gpu/check_failures, which compares two processes.
    std::printf("canary: %s %s\n", once->digest.c_str(), once->setup.c_str());
  }
}

TEST(DeviceLossGpuTest, ACanarySeesAConvolutionThatComputesWrongly) {
  auto& kernel = GetVaeCudaOps().fused_convolution;
  static const auto right = kernel;
  if (!HasFusedConvolutions(kGpu)) GTEST_SKIP() << "the kernel is for Hopper GPUs";
  static at::ScalarType broken = at::kFloat;
  kernel = [](const FusedConvolution& convolution, at::Tensor& out) {
    const bool done = right(convolution, out);
    if (out.scalar_type() == broken) out.mul_(1.5);
    return done;
  };
  for (const at::ScalarType dtype : {at::kFloat, at::kHalf}) {
    broken = dtype;
    EXPECT_TRUE(IsDeviceLost(RunDeviceCanary(kGpu, at::kBFloat16).status())) << dtype;
  }
  kernel = right;
  EXPECT_TRUE(RunDeviceCanary(kGpu, at::kBFloat16).ok());
}

TEST(DeviceLossGpuTest, AnErrorThatDoesNotLastLosesNothing) {
  const absl::Status status = CatchTorchErrors("testing", [] {
    TORCH_CHECK(false, "CUDA error: an illegal memory access was encountered");
    return absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << "the words alone do not decide";
  EXPECT_EQ(at::ones({3}, kGpu).sum().item<float>(), 3);
}

TEST(DeviceLossGpuTest, ATrapLosesTheDeviceForEveryLaterCall) {
  const auto engine = MakeWanEngine({"cuda:0"}, {});
  ASSERT_TRUE(engine.ok()) << engine.status();
  const auto compute = [] {
    return CatchTorchErrors("testing", [] {
      at::ones({1 << 20}, kGpu).sum().item<float>();
      return absl::OkStatus();
    });
  };
  ASSERT_TRUE(compute().ok());
  ASSERT_TRUE(LaunchTrap(0));
  for (int call = 0; call < 3; ++call) {
    const absl::Status status = compute();
    EXPECT_TRUE(IsDeviceLost(status)) << call << ": " << status;
    if (call == 0) std::printf("lost: %s\n", status.ToString().c_str());
  }
  EXPECT_TRUE(IsDeviceLost((*engine)->RunCanary().status()));
  ReleaseCachedMemory(kGpu);
  // What was broken is not taken apart: the process ends as the server does.
  std::fflush(stdout);
  _exit(::testing::Test::HasFailure() ? 1 : 0);
}

}  // namespace
}  // namespace wan
