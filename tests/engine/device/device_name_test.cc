#include "engine/device/device_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wan {
namespace {

using testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(ParseDeviceName, KnowsTheCpuAndEveryGpu) {
  const auto cpu = ParseDeviceName("cpu");
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_EQ(*cpu, std::nullopt);
  for (const int gpu : {0, 7, 99}) {
    const auto parsed = ParseDeviceName("cuda:" + std::to_string(gpu));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, gpu);
  }
}

TEST(ParseDeviceName, NamesWhatItDoesNotKnow) {
  for (const char* name : {"", "tpu", "CPU", "cuda", "cuda:", "cuda:x", "cuda:1x", "cuda:-1",
                           "cuda: 1", "cuda:99999999999", "cpu:0"}) {
    const absl::Status status = ParseDeviceName(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(Message(status),
                HasSubstr("device is '" + std::string(name) + "'; must be cpu or cuda:N"));
  }
}

TEST(CheckGpuExists, AcceptsEveryGpuOfTheDriver) {
  for (int gpu = 0; gpu < 8; ++gpu) EXPECT_TRUE(CheckGpuExists(gpu, 8).ok()) << gpu;
}

TEST(CheckGpuExists, NamesTheGpusThatExist) {
  const auto refused = [](int gpu, int count) {
    const absl::Status status = CheckGpuExists(gpu, count);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    return Message(status);
  };
  EXPECT_EQ(refused(0, 0), "device cuda:0 does not exist; the driver offers no GPU");
  EXPECT_EQ(refused(1, 1), "device cuda:1 does not exist; the driver offers only cuda:0");
  EXPECT_EQ(refused(8, 8), "device cuda:8 does not exist; the driver offers cuda:0 to cuda:7");
  EXPECT_EQ(refused(99, 8), "device cuda:99 does not exist; the driver offers cuda:0 to cuda:7");
}

}  // namespace
}  // namespace wan
