// The video of a job while it is made: who watches gets the bytes as they come, and learns how they
// end.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "tests/server/jobs/lifecycle_fixture.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_FAILED;

constexpr char kBegin[] = "header of seed 5;first of seed 5;";
constexpr char kWhole[] =
    "header of seed 5;first of seed 5;VAE_Decoding of seed 5;Video_Encoding of seed 5;";

class LiveVideoTest : public LifecycleTest {
 protected:
  static wan::v1::GenerationRequest Progressive() {
    wan::v1::GenerationRequest request = Request();
    request.set_progressive(true);
    request.set_seed(5);
    return request;
  }

  std::unique_ptr<LiveVideoReader> Watch(const std::string& job) {
    auto reader = service_->WatchVideo(job);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? *std::move(reader) : nullptr;
  }

  // Waits until there is something to read.
  static void Await(LiveVideoReader& reader) {
    for (;;) {
      auto notified = std::make_shared<absl::Notification>();
      if (reader.Ready([notified] { notified->Notify(); })) return;
      notified->WaitForNotification();
    }
  }

  // Waits for `text`, which may come in pieces.
  static void Expect(LiveVideoReader& reader, const std::string& text) {
    std::string got;
    while (got.size() < text.size()) {
      Await(reader);
      auto bytes = reader.Read(7);
      ASSERT_TRUE(bytes.ok()) << bytes.status() << " after " << got;
      ASSERT_FALSE(bytes->empty()) << "ended after " << got;
      got += *bytes;
    }
    EXPECT_EQ(got.substr(0, text.size()), text);
  }

  // How the stream ends.
  static absl::Status EndOf(LiveVideoReader& reader) {
    for (;;) {
      Await(reader);
      auto bytes = reader.Read(1000);
      if (!bytes.ok() || bytes->empty()) return bytes.status();
    }
  }

  // The files that the job's folder staging has now.
  std::vector<std::string> Staged() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(options_.data_dir / "staging")) {
      if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
    }
    return names;
  }
};

TEST_F(LiveVideoTest, WaitsForDecodingAndEndsWithTheJob) {
  Open();
  engine_->Hold("VAE_Decoding");
  const std::string job = CreateHeld("Step_1_Inference", Progressive());
  const auto early = Watch(job);
  bool notified = false;
  EXPECT_FALSE(early->Ready([&] { notified = true; }));
  EXPECT_FALSE(notified);
  engine_->Release("Step_1_Inference");
  engine_->AwaitHeld("VAE_Decoding");
  EXPECT_TRUE(notified);

  // The frames so far are there for all, and the end is not.
  const auto late = Watch(job);
  for (LiveVideoReader* reader : {early.get(), late.get()}) {
    Await(*reader);
    EXPECT_EQ(reader->Begun(), absl::StatusOr<bool>(true));
    EXPECT_EQ(reader->content_type(), "video/mp4; codecs=\"avc1.64000a\"");
    Expect(*reader, kBegin);
    EXPECT_FALSE(reader->Ready([] {}));
  }
  EXPECT_THAT(Staged(), IsEmpty()) << "the file has no name";

  engine_->Release("VAE_Decoding");
  Expect(*early, std::string(kWhole).substr(std::string(kBegin).size()));
  EXPECT_TRUE(EndOf(*early).ok());
  RunToEnd(job);
  EXPECT_TRUE(EndOf(*late).ok()) << "whoever has begun reads to the end";

  // The job has its file, and no stream.
  const auto after = Watch(job);
  Await(*after);
  EXPECT_EQ(after->Begun(), absl::StatusOr<bool>(false));
}

TEST_F(LiveVideoTest, TheFileIsThatOfAnOrdinaryJob) {
  Open();
  wan::v1::GenerationRequest ordinary = Progressive();
  ordinary.set_progressive(false);
  const std::string one = Create(Progressive());
  const std::string other = Create(ordinary);
  RunToEnd(one);
  RunToEnd(other);
  ASSERT_EQ(Get(one).artifacts_size(), 1);
  ASSERT_EQ(Get(other).artifacts_size(), 1);
  EXPECT_EQ(Get(one).artifacts(0).sha256(), Get(other).artifacts(0).sha256());
  EXPECT_EQ(Get(one).provenance().SerializeAsString(), Get(other).provenance().SerializeAsString());
}

TEST_F(LiveVideoTest, AFailedJobCutsIt) {
  Open();
  const std::string job = CreateHeld("VAE_Decoding", Progressive());
  const auto reader = Watch(job);
  Expect(*reader, kBegin);
  engine_->FailAt("VAE_Decoding", absl::InternalError("out of luck"));
  engine_->Release("VAE_Decoding");
  const absl::Status end = EndOf(*reader);
  EXPECT_EQ(end.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ReasonOf(end), kReasonLiveVideoCut);
  RunToEnd(job);
  EXPECT_EQ(Get(job).state(), JOB_STATE_FAILED);
}

TEST_F(LiveVideoTest, CancelCutsItAndEndsTheWait) {
  Open();
  const std::string running = CreateHeld("VAE_Decoding", Progressive());
  const std::string queued = Create(Progressive());
  const auto watching = Watch(running);
  Expect(*watching, kBegin);
  const auto waiting = Watch(queued);
  EXPECT_FALSE(waiting->Ready([] {}));
  ASSERT_TRUE(calls().Cancel(queued, "CancelJob").ok());
  Await(*waiting);
  EXPECT_EQ(waiting->Begun(), absl::StatusOr<bool>(false));
  ASSERT_TRUE(calls().Cancel(running, "CancelJob").ok());
  EXPECT_EQ(ReasonOf(EndOf(*watching)), kReasonLiveVideoCut);
}

TEST_F(LiveVideoTest, AnotherAttemptBeginsAgain) {
  options_.savepoint_interval = absl::ZeroDuration();
  Open();
  const std::string job = CreateHeld("VAE_Decoding", Progressive());
  Expect(*Watch(job), kBegin);
  KillAndRestart(/*load=*/false);
  const auto reader = Watch(job);
  EXPECT_FALSE(reader->Ready([] {})) << "nothing is left of the first attempt";
  LoadModel("m");
  Expect(*reader, kWhole);
  EXPECT_TRUE(EndOf(*reader).ok());
  RunToEnd(job);
}

TEST_F(LiveVideoTest, ALostFileCutsIt) {
  Open();
  engine_->LoseOutput(OutputKind::kMp4, absl::ResourceExhaustedError("no space"));
  wan::v1::GenerationRequest request = Progressive();
  request.add_outputs(wan::v1::OUTPUT_KIND_LOSSLESS_MKV);
  request.add_outputs(wan::v1::OUTPUT_KIND_MP4);
  const std::string job = CreateHeld("VAE_Decoding", request);
  const auto reader = Watch(job);
  Expect(*reader, kBegin);
  engine_->Release("VAE_Decoding");
  EXPECT_EQ(ReasonOf(EndOf(*reader)), kReasonLiveVideoCut);
  RunToEnd(job);
  EXPECT_EQ(Get(job).state(), JOB_STATE_COMPLETED);
}

TEST_F(LiveVideoTest, OnlyOfAProgressiveJob) {
  Open();
  const std::string job = CreateHeld("VAE_Decoding");
  const auto refused = service_->WatchVideo(job);
  EXPECT_EQ(ReasonOf(refused.status()), kReasonNotProgressive);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("does not have progressive"));
  EXPECT_EQ(ReasonOf(service_->WatchVideo("jobs/0123456789abcdef").status()), kReasonJobNotFound);
}

TEST_F(LiveVideoTest, AStopEndsEveryReader) {
  Open();
  const std::string job = CreateHeld("VAE_Decoding", Progressive());
  const std::string other = Create(Progressive());
  const auto reading = Watch(job);
  const auto waiting = Watch(other);
  absl::Notification woken;
  EXPECT_FALSE(waiting->Ready([&] { woken.Notify(); }));
  service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
  woken.WaitForNotification();
  EXPECT_EQ(waiting->Begun().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(EndOf(*reading)), kReasonServerStopping);
}

// A disk that takes no bytes costs the stream, not the job.
TEST_F(LiveVideoTest, ADiskThatRefusesItCostsOnlyTheStream) {
  Open();
  const std::string job = CreateHeld("Step_1_Inference", Progressive());
  const auto reader = Watch(job);
  fs::rename(options_.data_dir / "staging", options_.data_dir / "elsewhere");
  engine_->Hold("VAE_Decoding");
  engine_->Release("Step_1_Inference");
  engine_->AwaitHeld("VAE_Decoding");
  EXPECT_FALSE(reader->Ready([] {}));
  fs::rename(options_.data_dir / "elsewhere", options_.data_dir / "staging");
  engine_->Release("VAE_Decoding");
  RunToEnd(job);
  EXPECT_EQ(Get(job).state(), JOB_STATE_COMPLETED);
  Await(*reader);
  EXPECT_EQ(reader->Begun(), absl::StatusOr<bool>(false));
}

}  // namespace
}  // namespace wan::server
