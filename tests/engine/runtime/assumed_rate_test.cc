#include "engine/runtime/assumed_rate.h"

#include <string>

#include "gtest/gtest.h"

namespace wan {
namespace {

TEST(AssumedRateTest, KnowsCardsByTheWordsOfTheirNames) {
  const double h200 = AssumedGpuRate("NVIDIA H200", "bf16");
  // What jobs reached there (docs/measured/performance.md), with room.
  EXPECT_GT(h200, 300e12);
  EXPECT_LT(h200, 600e12);
  EXPECT_EQ(AssumedGpuRate("NVIDIA H100 80GB HBM3", "bf16"), h200);
  EXPECT_LT(AssumedGpuRate("NVIDIA H100 PCIe", "bf16"), h200);
  // "H20" is no part of "H200", and "A10" none of "A100".
  EXPECT_LT(AssumedGpuRate("NVIDIA H20", "bf16"), h200 / 6);
  EXPECT_GT(AssumedGpuRate("NVIDIA A100-SXM4-80GB", "bf16"), AssumedGpuRate("NVIDIA A10", "bf16"));
  EXPECT_GT(AssumedGpuRate("NVIDIA RTX 6000 Ada Generation", "bf16"),
            AssumedGpuRate("NVIDIA RTX A6000", "bf16"));
}

TEST(AssumedRateTest, TakesAnUnknownCardForASlowOne) {
  for (const std::string name : {"NVIDIA H200", "NVIDIA L4", "NVIDIA GeForce RTX 3090"}) {
    EXPECT_LT(AssumedGpuRate("A card of 2031", "bf16"), AssumedGpuRate(name, "bf16")) << name;
  }
  EXPECT_GT(AssumedGpuRate("", "bf16"), 0);
}

TEST(AssumedRateTest, KnowsThatTheDtypeCounts) {
  EXPECT_LT(AssumedGpuRate("NVIDIA H200", "fp32"), AssumedGpuRate("NVIDIA H200", "bf16"));
  EXPECT_LT(AssumedCpuRate(8, "bf16"), AssumedCpuRate(8, "fp32"));
}

TEST(AssumedRateTest, CountsCores) {
  EXPECT_EQ(AssumedCpuRate(8, "fp32"), 4 * AssumedCpuRate(2, "fp32"));
  EXPECT_EQ(AssumedCpuRate(0, "fp32"), AssumedCpuRate(1, "fp32")) << "unknown";
}

}  // namespace
}  // namespace wan
