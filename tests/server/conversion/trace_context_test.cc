#include "server/conversion/trace_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace wan::server {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kTraceId[] = "0af7651916cd43dd8448eb211c80319c";
constexpr char kParent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

std::string StateOf(const std::vector<std::string_view>& values) {
  const wan::v1::TraceContext trace = ParseTraceContext({kParent}, values);
  EXPECT_EQ(trace.trace_id(), kTraceId) << "a wrong state costs the parent";
  return trace.tracestate();
}

TEST(TraceContextTest, ReadsWhatTheStandardsExampleSays) {
  const wan::v1::TraceContext trace =
      ParseTraceContext({kParent}, {"congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"});
  EXPECT_EQ(trace.trace_id(), kTraceId);
  EXPECT_EQ(trace.parent_span_id(), "b7ad6b7169203331");
  EXPECT_TRUE(trace.sampled());
  EXPECT_EQ(trace.tracestate(), "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7");
}

TEST(TraceContextTest, OnlyTheLastBitOfTheFlagsSaysSampled) {
  const auto sampled = [](const std::string& flags) {
    const std::string parent = std::string(kParent).substr(0, 53) + flags;
    return ParseTraceContext({parent}, {}).sampled();
  };
  EXPECT_FALSE(sampled("00"));
  EXPECT_FALSE(sampled("02"));
  EXPECT_FALSE(sampled("fe"));
  EXPECT_TRUE(sampled("03"));
  EXPECT_TRUE(sampled("ff"));
}

TEST(TraceContextTest, LaterVersionsMaySayMore) {
  const std::string later = "cc" + std::string(kParent).substr(2);
  for (const std::string& parent : {later, later + "-what-comes"}) {
    EXPECT_EQ(ParseTraceContext({parent}, {}).trace_id(), kTraceId) << parent;
  }
}

TEST(TraceContextTest, WhatIsNotValidIsIgnoredWithItsState) {
  const std::string parent = kParent;
  const std::string zero_trace(32, '0');
  const std::string zero_parent(16, '0');
  for (const std::string& wrong : std::vector<std::string>{
           "", "00", parent.substr(1), parent.substr(0, 54), parent + "-00", parent + "0",
           "ff" + parent.substr(2), "0g" + parent.substr(2), "cc" + parent.substr(2) + "x",
           "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-B7AD6B7169203331-01",
           "00-" + zero_trace + "-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-" + zero_parent + "-01",
           "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1.",
           "00-0af7651916cd43dd8448eb211c80319\xC3-b7ad6b7169203331-01", " " + parent}) {
    const wan::v1::TraceContext trace = ParseTraceContext({wrong}, {"a=1"});
    EXPECT_THAT(trace.SerializeAsString(), IsEmpty()) << wrong;
  }
  EXPECT_THAT(ParseTraceContext({}, {"a=1"}).SerializeAsString(), IsEmpty());
  EXPECT_THAT(ParseTraceContext({kParent, kParent}, {}).SerializeAsString(), IsEmpty());
}

TEST(TraceContextTest, StatesOfSeveralFieldsAreOne) {
  EXPECT_EQ(StateOf({"a=1, b=2\t", "", " c@d/e=x y"}), "a=1,b=2,c@d/e=x y");
  EXPECT_EQ(StateOf({",,"}), "");
}

TEST(TraceContextTest, AStateThatIsNotValidIsLeftOut) {
  const std::string long_part(257, 'a');
  for (const std::string& wrong :
       std::vector<std::string>{"a", "=1", "a=", "A=1", "_a=1", "a=1=2", "a=\x01", "a=\xC3\xA9",
                                "a=1,a=2", long_part + "=1", "a=" + long_part}) {
    EXPECT_EQ(StateOf({wrong}), "") << wrong;
  }
  std::string many;
  for (int i = 0; i < 33; ++i) many += "k" + std::to_string(i) + "=v,";
  EXPECT_EQ(StateOf({many}), "");
}

TEST(TraceContextTest, ALongStateLosesLongMembersAndThenTheLast) {
  const std::string long_member = "long=" + std::string(200, 'x');
  std::string state;
  for (int i = 0; i < 6; ++i) {
    state += "k" + std::to_string(i) + "=" + std::string(100, 'v') + ",";
  }
  const std::string kept = StateOf({long_member, state});
  EXPECT_THAT(kept, SizeIs(4 * 103 + 3));
  EXPECT_TRUE(kept.starts_with("k0=")) << kept;
}

}  // namespace
}  // namespace wan::server
