// What a connection may do, frame by frame: each rule once kept and once broken.
#include "server/calls/http2_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/fakes/fake_clock.h"
#include "tests/support/http2_bytes.h"

namespace wan::server {
namespace {

using support::EmptyMessage;
using support::Frame;
using support::HealthCheckHeaders;
using support::Hello;
using support::ResetFrame;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint8_t kWhole = support::kEndHeaders;
constexpr uint8_t kWholeAndLast = support::kEndHeaders | support::kEndStream;

std::string Opening(uint32_t stream, uint8_t flags = kWhole) {
  return Frame(support::kHeaders, flags, stream, HealthCheckHeaders());
}

class Http2GuardTest : public ::testing::Test {
 protected:
  // Whether the caller may send it.
  bool Takes(const std::string& bytes) {
    violation_ = guard_.FromCaller(bytes);
    return !violation_.has_value();
  }
  bool Answers(const std::string& bytes) {
    violation_ = guard_.FromServer(bytes);
    return !violation_.has_value();
  }
  // What gRPC sends at the end of a call.
  static std::string Answer(uint32_t stream) {
    return Frame(support::kHeaders, kWhole, stream, "h") +
           Frame(support::kData, 0, stream, EmptyMessage()) +
           Frame(support::kHeaders, kWholeAndLast, stream, "t");
  }
  // The rule that was broken.
  std::string Broken() const { return std::string(NameOf(violation_->rule)); }

  fakes::FakeClock clock_;
  Http2Limits limits_{.open_streams = 3,
                      .header_block_bytes = 1'000,
                      .continuations = 2,
                      .resets = {.most = 5, .per_second = 2}};
  Http2Guard guard_{limits_, clock_};
  std::optional<Http2Violation> violation_;
};

TEST_F(Http2GuardTest, FramesMayBeCutAnywhere) {
  const std::string asked =
      Hello() + Opening(1) + Frame(support::kData, support::kEndStream, 1, EmptyMessage()) +
      Frame(support::kPing, 0, 0, "12345678") + Opening(3, 0) +
      Frame(support::kContinuation, kWhole, 3, "c") + ResetFrame(3) + Opening(5);
  const std::string answered = Frame(support::kSettings, 0, 0, "") + Answer(1) + Answer(5);
  for (size_t cut = 0; cut <= asked.size(); ++cut) {
    Http2Guard guard(limits_, clock_);
    ASSERT_EQ(guard.FromCaller(asked.substr(0, cut)), std::nullopt) << cut;
    ASSERT_EQ(guard.FromCaller(asked.substr(cut)), std::nullopt) << cut;
    EXPECT_EQ(guard.unanswered(), 2) << cut;
    EXPECT_EQ(guard.TakeResets(), 1) << cut;
    EXPECT_EQ(guard.TakeResets(), 0) << "each counts once";
  }
  Http2Guard guard(limits_, clock_);
  guard.FromCaller(asked);
  for (const char byte : answered) {
    ASSERT_EQ(guard.FromServer(std::string(1, byte)), std::nullopt);
  }
  EXPECT_EQ(guard.unanswered(), 0);
}

TEST_F(Http2GuardTest, OnlyHttp2IsSpoken) {
  ASSERT_FALSE(Takes("GET / HTTP/1.1\r\n"));
  EXPECT_EQ(Broken(), "protocol");
  EXPECT_THAT(violation_->text, HasSubstr("does not begin with the preface of HTTP/2"));
}

TEST_F(Http2GuardTest, OpenStreamsAreCountedThoughNobodyAcknowledgesSettings) {
  ASSERT_TRUE(Takes(Hello() + Opening(1) + Opening(3) + Opening(5)));
  ASSERT_FALSE(Takes(Opening(7)));
  EXPECT_EQ(Broken(), "streams");
  EXPECT_THAT(violation_->text, HasSubstr("more than 3 open streams"));
}

TEST_F(Http2GuardTest, AStreamIsOpenUntilBothSidesHaveEndedIt) {
  ASSERT_TRUE(Takes(Hello() + Opening(1) + Opening(3) + Opening(5, kWholeAndLast)));
  ASSERT_TRUE(Answers(Answer(1)));
  EXPECT_EQ(guard_.unanswered(), 2);
  ASSERT_TRUE(Takes(Frame(support::kData, support::kEndStream, 1, "") + Opening(7)));
  ASSERT_TRUE(Answers(Answer(5)));
  ASSERT_TRUE(Takes(Opening(9)));
  ASSERT_TRUE(Takes(ResetFrame(3) + Opening(11)));
  // The caller has said nothing more; gRPC resets what it has answered.
  ASSERT_TRUE(Answers(Answer(7)));
  ASSERT_TRUE(Answers(ResetFrame(7, 0)));
  ASSERT_TRUE(Takes(Opening(13)));
  EXPECT_EQ(guard_.TakeResets(), 1) << "that of stream 3";
  EXPECT_FALSE(Takes(Opening(15)));
}

TEST_F(Http2GuardTest, ABlockOfHeadersHasItsBytes) {
  const std::string half(500, 'x');
  ASSERT_TRUE(Takes(Hello() + Frame(support::kHeaders, 0, 1, half) +
                    Frame(support::kContinuation, kWhole, 1, half)));
  ASSERT_TRUE(Takes(Frame(support::kHeaders, 0, 3, half))) << "the next one begins anew";
  ASSERT_FALSE(Takes(Frame(support::kContinuation, 0, 3, half + "x").substr(0, 9)))
      << "the announced size is enough";
  EXPECT_EQ(Broken(), "header_block");
  EXPECT_THAT(violation_->text, HasSubstr("stream 3: its headers have more than 1000 bytes"));
}

TEST_F(Http2GuardTest, ABlockOfHeadersHasItsFrames) {
  const std::string empty = Frame(support::kContinuation, 0, 1, "");
  ASSERT_TRUE(Takes(Hello() + Frame(support::kHeaders, 0, 1, "") + empty + empty));
  ASSERT_FALSE(Takes(empty));
  EXPECT_EQ(Broken(), "header_block");
  EXPECT_THAT(violation_->text, HasSubstr("more than 2 CONTINUATION frames"));
}

TEST_F(Http2GuardTest, NothingStandsInsideOfABlock) {
  ASSERT_TRUE(Takes(Hello() + Frame(support::kHeaders, 0, 1, "")));
  ASSERT_FALSE(Takes(Frame(support::kPing, 0, 0, "12345678")));
  EXPECT_EQ(Broken(), "protocol");
}

TEST_F(Http2GuardTest, AContinuationIsOfTheStreamWhoseBlockIsOpen) {
  Http2Guard other(limits_, clock_);
  EXPECT_NE(other.FromCaller(Hello() + Frame(support::kContinuation, kWhole, 1, "")), std::nullopt);
  ASSERT_TRUE(Takes(Hello() + Frame(support::kHeaders, 0, 1, "")));
  EXPECT_FALSE(Takes(Frame(support::kContinuation, kWhole, 3, "")));
  EXPECT_EQ(Broken(), "protocol");
}

TEST_F(Http2GuardTest, ACallerOpensStreamsOfOddNumbersAndPushesNothing) {
  Http2Guard other(limits_, clock_);
  EXPECT_NE(other.FromCaller(Hello() + Frame(support::kPushPromise, kWhole, 1, "1234")),
            std::nullopt);
  ASSERT_TRUE(Takes(Hello()));
  EXPECT_FALSE(Takes(Opening(2)));
  EXPECT_EQ(Broken(), "protocol");
}

TEST_F(Http2GuardTest, CallsMayBeResetAtOnceAndAtAPace) {
  ASSERT_TRUE(Takes(Hello()));
  uint32_t stream = 1;
  const auto reset = [&] {
    const bool taken = Takes(Opening(stream) + ResetFrame(stream));
    stream += 2;
    return taken;
  };
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(reset()) << i;
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(reset());
  ASSERT_TRUE(reset());
  ASSERT_FALSE(reset());
  EXPECT_EQ(Broken(), "resets");
  EXPECT_THAT(violation_->text, HasSubstr("it may reset 5 at once and 2 a second"));
}

TEST_F(Http2GuardTest, ResetsThatTheCallerProvokesCountAsItsOwn) {
  ASSERT_TRUE(Takes(Hello()));
  for (uint32_t stream = 1; stream <= 9; stream += 2) {
    ASSERT_TRUE(Takes(Opening(stream)));
    ASSERT_TRUE(Answers(ResetFrame(stream, 1)));
  }
  ASSERT_TRUE(Takes(Opening(11)));
  ASSERT_FALSE(Answers(ResetFrame(11, 1) + Frame(support::kPing, 0, 0, "12345678").substr(0, 11)));
  EXPECT_EQ(Broken(), "resets");
  EXPECT_EQ(guard_.unfinished_to_caller(), 11) << "of the frame that follows";
}

TEST_F(Http2GuardTest, ResetsAfterTheAnswerAreFree) {
  ASSERT_TRUE(Takes(Hello()));
  for (uint32_t stream = 1; stream < 100; stream += 2) {
    ASSERT_TRUE(Takes(Opening(stream)));
    ASSERT_TRUE(Answers(Answer(stream)));
    ASSERT_TRUE(Takes(ResetFrame(stream)));
  }
  EXPECT_EQ(guard_.TakeResets(), 0);
}

TEST_F(Http2GuardTest, FurtherHeadersOfAStreamCountAsResets) {
  ASSERT_TRUE(Takes(Hello() + Opening(1)));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Takes(Opening(1)));
  EXPECT_FALSE(Takes(Opening(1)));
  EXPECT_EQ(Broken(), "resets");
}

TEST_F(Http2GuardTest, AThousandCallsMayBeCancelledTwiceByDefault) {
  Http2Guard guard(Http2Limits(), clock_);
  ASSERT_EQ(guard.FromCaller(Hello()), std::nullopt);
  uint32_t stream = 1;
  for (int round = 0; round < 2; ++round) {
    const uint32_t first = stream;
    for (int i = 0; i < 1'000; ++i, stream += 2) {
      ASSERT_EQ(guard.FromCaller(Opening(stream)), std::nullopt);
    }
    for (uint32_t open = first; open < stream; open += 2) {
      ASSERT_EQ(guard.FromCaller(ResetFrame(open)), std::nullopt);
    }
  }
}

TEST_F(Http2GuardTest, TheReasonIsAFrameAndItsPlaceIsKnown) {
  ASSERT_TRUE(Takes(Hello() + Opening(1)));
  EXPECT_EQ(guard_.unfinished_to_caller(), 0);
  const std::string data = Frame(support::kData, 0, 1, "12345");
  ASSERT_TRUE(Answers(data + data.substr(0, 4)));
  EXPECT_EQ(guard_.unfinished_to_caller(), 4);
  ASSERT_TRUE(Answers(data.substr(4, 7)));
  EXPECT_EQ(guard_.unfinished_to_caller(), 11);
  ASSERT_TRUE(Answers(data.substr(11)));
  EXPECT_EQ(guard_.unfinished_to_caller(), 0);
  const std::string frame = guard_.GoAway({Http2Rule::kResets, "why"});
  EXPECT_EQ(frame, Frame(support::kGoAway, 0, 0,
                         support::BigEndian(1, 4) + support::BigEndian(0xb, 4) + "why"));
}

}  // namespace
}  // namespace wan::server
