#include "engine/device/compiled_archs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wan {
namespace {

using testing::HasSubstr;

constexpr char kBuilt[] = "80;89;90a";

TEST(CompiledArchsTest, CodeRunsOnLaterCardsOfItsMajorNumber) {
  for (const int capability : {80, 86, 87, 89, 90}) {
    EXPECT_TRUE(CheckCompiledFor(capability, "a card", kBuilt).ok()) << capability;
  }
  EXPECT_TRUE(CheckCompiledFor(103, "a card", "80;100").ok());
}

TEST(CompiledArchsTest, OtherCardsAreRefused) {
  for (const int capability : {61, 70, 75, 100, 103, 110, 120, 121}) {
    EXPECT_EQ(CheckCompiledFor(capability, "a card", kBuilt).code(),
              absl::StatusCode::kFailedPrecondition)
        << capability;
  }
  // Code for 8.9 runs on no 8.6, and 9.0a on nothing else of Hopper's major number.
  EXPECT_FALSE(CheckCompiledFor(86, "a card", "89").ok());
  EXPECT_FALSE(CheckCompiledFor(91, "a card", kBuilt).ok());
  EXPECT_FALSE(CheckCompiledFor(80, "a card", "").ok());
}

TEST(CompiledArchsTest, TheRefusalNamesTheCardAndTheRemedy) {
  const std::string message(CheckCompiledFor(120, "NVIDIA RTX 5090", kBuilt).message());
  EXPECT_THAT(message, HasSubstr("NVIDIA RTX 5090 has compute capability 12.0"));
  EXPECT_THAT(message, HasSubstr("are for 80, 89, 90a; build with -DWAN_CUDA_ARCHS=120"));
}

}  // namespace
}  // namespace wan
