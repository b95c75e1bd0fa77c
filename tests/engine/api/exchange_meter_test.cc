#include "engine/api/exchange_meter.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace wan {
namespace {

TEST(ExchangeMeterTest, CountsWaitsWhenTheyAreOver) {
  ExchangeMeter meter;
  bool over = false;
  meter.CountSent(10);
  meter.CountWait([] { return 1; });
  meter.CountWait(
      [&]() -> std::optional<double> { return over ? std::optional<double>(2) : std::nullopt; });
  meter.CountWait([] { return 4; });
  EXPECT_EQ(meter.Read().sent_bytes, 10u);
  EXPECT_EQ(meter.Read().waited_seconds, 1) << "the device has not come to the second one";
  over = true;
  EXPECT_EQ(meter.Read().waited_seconds, 7);
  EXPECT_EQ(meter.Read().waited_seconds, 7) << "each counts once";
}

TEST(ExchangeMeterTest, TheWaitsOfALostDeviceDoNotCount) {
  ExchangeMeter meter;
  meter.CountWait([]() -> std::optional<double> { throw std::runtime_error("lost"); });
  meter.CountWait([] { return 4; });
  EXPECT_EQ(meter.Read().waited_seconds, 4);
}

}  // namespace
}  // namespace wan
