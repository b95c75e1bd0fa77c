#include "engine/pipeline/frame_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_device_monitor.h"

namespace wan {
namespace {

// What a writer was told, shared with the test since the encoder owns the writer.
struct Written {
  std::vector<uint8_t> first_bytes;
  bool finished = false;
  // Set: every Write waits for it.
  absl::Notification* gate = nullptr;
  size_t fail_at = SIZE_MAX;
};

class RecordingWriter final : public VideoWriter {
 public:
  explicit RecordingWriter(Written& written) : written_(written) {}

  absl::Status Write(std::span<const uint8_t> rgb24) override {
    if (written_.gate != nullptr) written_.gate->WaitForNotification();
    if (written_.first_bytes.size() == written_.fail_at) return absl::DataLossError("disk full");
    written_.first_bytes.push_back(rgb24[0]);
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    written_.finished = true;
    return absl::OkStatus();
  }

 private:
  Written& written_;
};

class SpanSink final : public TelemetrySink {
 public:
  void OnSpanEnd(const SpanRecord& record) override { records.push_back(record); }
  std::vector<SpanRecord> records;
};

class FrameEncoderTest : public testing::Test {
 protected:
  std::unique_ptr<FrameEncoder> MakeEncoder(std::vector<Written*> outputs, int queue_frames = 8) {
    std::vector<std::unique_ptr<VideoWriter>> writers;
    for (Written* output : outputs) writers.push_back(std::make_unique<RecordingWriter>(*output));
    return std::make_unique<FrameEncoder>(std::move(writers), queue_frames, recorder_);
  }

  fakes::FakeClock clock_;
  fakes::FakeDeviceMonitor monitor_;
  SpanSink sink_;
  Recorder recorder_{clock_, monitor_, {&sink_}};
};

TEST_F(FrameEncoderTest, EveryWriterGetsEveryFrameInOrder) {
  Written first;
  Written second;
  const auto encoder = MakeEncoder({&first, &second});
  std::vector<uint8_t> expected;
  for (uint8_t i = 0; i < 40; ++i) {
    expected.push_back(i);
    ASSERT_TRUE(encoder->Push({i, 1, 2}).ok());
  }
  EXPECT_TRUE(encoder->Finish().ok());
  for (const Written* output : {&first, &second}) {
    EXPECT_EQ(output->first_bytes, expected);
    EXPECT_TRUE(output->finished);
  }
  ASSERT_EQ(sink_.records.size(), 1u);
  EXPECT_EQ(sink_.records[0].stage, StageKind::kVideoEncoding);
  EXPECT_TRUE(sink_.records[0].status.ok());
}

TEST_F(FrameEncoderTest, DecodingGoesOnWhileAWriterIsBusy) {
  Written output;
  absl::Notification gate;
  output.gate = &gate;
  const auto encoder = MakeEncoder({&output});
  // The writer stands at the first frame; frames are taken all the same.
  for (uint8_t i = 0; i < 5; ++i) ASSERT_TRUE(encoder->Push({i}).ok());
  gate.Notify();
  EXPECT_TRUE(encoder->Finish().ok());
  EXPECT_EQ(output.first_bytes.size(), 5u);
}

TEST_F(FrameEncoderTest, TheDecoderWaitsOnlyWhereTheQueueIsFull) {
  constexpr int kQueue = 121;
  Written output;
  absl::Notification gate;
  output.gate = &gate;
  const auto encoder = MakeEncoder({&output}, kQueue);
  // The writer stands at the first frame. This would not return if any of these waited.
  for (int i = 0; i < kQueue; ++i) ASSERT_TRUE(encoder->Push({0}).ok());
  std::atomic<int> pushed = 0;
  std::thread decoder([&] {
    // Room for one may come as the writer takes the first, and for no more.
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(encoder->Push({1}).ok());
      ++pushed;
    }
  });
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_LT(pushed, 2);
  gate.Notify();
  decoder.join();
  EXPECT_TRUE(encoder->Finish().ok());
  EXPECT_EQ(output.first_bytes.size(), static_cast<size_t>(kQueue + 2));
}

TEST_F(FrameEncoderTest, AWritersErrorReachesTheDecoder) {
  Written output;
  output.fail_at = 2;
  const auto encoder = MakeEncoder({&output});
  absl::Status status;
  // Some pushes may pass before the error is known, but not more than the queue holds.
  for (int i = 0; i < 100 && status.ok(); ++i) status = encoder->Push({0});
  EXPECT_EQ(status.message(), "disk full");
  EXPECT_EQ(encoder->Finish().message(), "disk full");
  EXPECT_FALSE(output.finished);
  ASSERT_EQ(sink_.records.size(), 1u);
  EXPECT_EQ(sink_.records[0].status.message(), "disk full");
}

TEST_F(FrameEncoderTest, AnAbandonedVideoIsNotFinished) {
  Written output;
  auto encoder = MakeEncoder({&output});
  ASSERT_TRUE(encoder->Push({0}).ok());
  encoder.reset();
  EXPECT_FALSE(output.finished);
}

TEST_F(FrameEncoderTest, AnAbandonedVideoGetsNoMoreFrames) {
  Written output;
  absl::Notification gate;
  output.gate = &gate;
  const auto encoder = MakeEncoder({&output});
  for (uint8_t i = 0; i < 5; ++i) ASSERT_TRUE(encoder->Push({i}).ok());
  encoder->Abandon();
  EXPECT_TRUE(absl::IsCancelled(encoder->Push({5})));
  gate.Notify();
  EXPECT_TRUE(absl::IsCancelled(encoder->Finish()));
  EXPECT_LE(output.first_bytes.size(), 1u);  // the one that was being written
  EXPECT_FALSE(output.finished);
  for (const SpanRecord& record : sink_.records) EXPECT_TRUE(absl::IsCancelled(record.status));
}

TEST_F(FrameEncoderTest, ADecoderThatWaitsForRoomHearsThatTheVideoIsAbandoned) {
  Written output;
  absl::Notification gate;
  output.gate = &gate;
  const auto encoder = MakeEncoder({&output});
  std::atomic<int> pushed = 0;
  absl::Status status;
  std::thread decoder([&] {
    while ((status = encoder->Push({0})).ok()) ++pushed;
  });
  // One frame is at the writer and the queue is full.
  while (pushed < 9) std::this_thread::yield();
  encoder->Abandon();
  decoder.join();  // though the writer still stands at the gate
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  gate.Notify();
}

TEST_F(FrameEncoderTest, WithoutFramesThereIsNoSpan) {
  Written output;
  const auto encoder = MakeEncoder({&output});
  EXPECT_TRUE(encoder->Finish().ok());
  EXPECT_TRUE(sink_.records.empty());
}

}  // namespace
}  // namespace wan
