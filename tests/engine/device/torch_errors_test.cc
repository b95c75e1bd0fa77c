// What libraries throw, and the status it becomes.
#include "engine/device/torch_errors.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/errors.h"
#include "engine/device/device_probe.h"

namespace wan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A device that says what a test wants it to.
class FakeDevice final : public DeviceProbe {
 public:
  std::optional<std::string> FindProblem() override { return problem; }
  int64_t RefusedAllocations() override { return refused; }
  bool MemoryIsShort() override { return is_short; }
  std::string DescribeMemory() override { return memory; }

  std::optional<std::string> problem;
  int64_t refused = 0;
  bool is_short = false;
  std::string memory;
};

class TorchErrorsTest : public ::testing::Test {
 protected:
  absl::Status Catch(const std::function<void()>& thrower) {
    return CatchTorchErrors("decoding the video", [&] {
      thrower();
      return absl::OkStatus();
    });
  }

  static std::string Message(const absl::Status& status) { return std::string(status.message()); }

  static void Throw(const std::string& text) { TORCH_CHECK(false, text); }

  FakeDevice device_;
  const ScopedDeviceProbe probe_{device_};
};

c10::AcceleratorError CudaError(int code, const std::string& text) {
  return c10::AcceleratorError({"", "", 0}, code, text);
}

TEST_F(TorchErrorsTest, EveryFaceOfOutOfMemory) {
  const std::vector<std::pair<std::string, std::function<void()>>> faces = {
      {"the device's allocator",
       [] { TORCH_CHECK_WITH(OutOfMemoryError, false, "Tried to allocate 20.00 MiB"); }},
      {"a kernel that is loaded late",
       [] { throw CudaError(2, "CUDA error: something without the words"); }},
      {"the driver, for a segment that grows", [] { Throw("CUDA driver error: out of memory"); }},
      {"pinned memory of LibTorch", [] { throw CudaError(2, "CUDA error: out of memory"); }},
      {"cuBLAS", [] { Throw("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasGemm`"); }},
      {"cuDNN 8", [] { Throw("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"); }},
      {"cuDNN 9, of the device",
       [] { Throw("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"); }},
      {"cuDNN 9, of the host",
       [] { Throw("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"); }},
      {"the CPU's allocator",
       [] { Throw("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"); }},
      {"operator new", [] { throw std::bad_alloc(); }},
      {"operator new inside a library", [] { Throw("std::bad_alloc"); }},
  };
  for (const auto& [name, face] : faces) {
    const absl::Status status = Catch(face);
    EXPECT_TRUE(IsOutOfMemory(status)) << name << ": " << status;
    EXPECT_THAT(Message(status), StartsWith("decoding the video: out of memory")) << name;
  }
}

// Libraries say the same words for want of memory and for errors of their own. The device decides.
TEST_F(TorchErrorsTest, AmbiguousErrorsAreMemorysIfMemoryEnded) {
  const std::string texts[] = {
      "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
      "GET was unable to find an engine to execute this computation",
      "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED",
  };
  for (const std::string& text : texts) {
    device_ = FakeDevice();
    EXPECT_EQ(Catch([&] { Throw(text); }).code(), absl::StatusCode::kInternal) << text;
    // A library tried to allocate its workspace, in vain, and then gave up.
    EXPECT_TRUE(IsOutOfMemory(Catch([&] {
      ++device_.refused;
      Throw(text);
    }))) << text;
    // An earlier job's refusal says nothing about this one.
    EXPECT_EQ(Catch([&] { Throw(text); }).code(), absl::StatusCode::kInternal) << text;
    // Another process has grown: the driver has nothing left for a handle.
    device_.is_short = true;
    EXPECT_TRUE(IsOutOfMemory(Catch([&] { Throw(text); }))) << text;
  }
  device_.is_short = true;
  EXPECT_EQ(Catch([] { Throw("shapes differ"); }).code(), absl::StatusCode::kInternal)
      << "an error of ours stays one when memory is short";
}

TEST_F(TorchErrorsTest, OutOfMemorySaysWhoHasTheMemory) {
  device_.memory = "GPU 0 has 0.1 GiB free of 139.8 GiB";
  EXPECT_THAT(
      Message(Catch([] { TORCH_CHECK_WITH(OutOfMemoryError, false, "Tried to allocate"); })),
      AllOf(HasSubstr("Tried to allocate"), HasSubstr("(GPU 0 has 0.1 GiB free of 139.8 GiB)")));
}

// No text decides whether the device is lost: it is asked.
TEST_F(TorchErrorsTest, ALostDeviceIsAskedNotRead) {
  const std::function<void()> errors[] = {
      [] { throw CudaError(700, "CUDA error: an illegal memory access was encountered"); },
      [] { Throw("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"); },
      [] { throw CudaError(2, "CUDA error: out of memory"); },
      [] { throw std::runtime_error("anything"); },
  };
  for (const auto& error : errors) {
    device_.problem = "cudaErrorIllegalAddress (an illegal memory access was encountered)";
    const absl::Status status = Catch(error);
    EXPECT_TRUE(IsDeviceLost(status)) << status;
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(Message(status), HasSubstr("decoding the video: the device no longer works: "
                                           "cudaErrorIllegalAddress"));
    device_.problem.reset();
    EXPECT_FALSE(IsDeviceLost(Catch(error)));
  }
}

TEST_F(TorchErrorsTest, WhatWorksIsNotAsked) {
  device_.problem = "lost";
  EXPECT_TRUE(Catch([] {}).ok());
  const absl::Status own = absl::CancelledError("stopped");
  EXPECT_EQ(CatchTorchErrors("decoding the video", [&] { return own; }), own);
}

}  // namespace
}  // namespace wan
