#include "server/retention/disk_reserve.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;

wan::v1::Job JobOf(const std::string& name, int frames = 121) {
  wan::v1::Job job;
  job.set_name(name);
  job.set_state(wan::v1::JOB_STATE_QUEUED);
  wan::v1::GenerationRequest& request = *job.mutable_request();
  request.set_model("m");
  request.set_width(1280);
  request.set_height(704);
  request.set_num_frames(frames);
  request.add_outputs(wan::v1::OUTPUT_KIND_MP4);
  return job;
}

class DiskReserveTest : public testing::Test {
 protected:
  DiskReserve MakeReserve(uint64_t bytes) {
    return DiskReserve(bytes, [this] { return free_; });
  }
  std::optional<uint64_t> free_;
  const uint64_t one_ = MostOutputBytes(JobOf("jobs/x").request());
};

TEST_F(DiskReserveTest, AnEstimateCoversFilesThatCannotBeCompressed) {
  wan::v1::GenerationRequest request = JobOf("jobs/x").request();
  const uint64_t pixels = uint64_t{1280} * 704 * 121;
  const uint64_t mp4 = MostOutputBytes(request);
  EXPECT_GE(mp4, pixels * 3 / 2);
  EXPECT_LT(mp4, pixels * 3);
  request.set_progressive(true);
  EXPECT_GE(MostOutputBytes(request), mp4 + pixels * 3 / 2) << "watchers read another file";
  request.set_progressive(false);
  request.add_outputs(wan::v1::OUTPUT_KIND_LOSSLESS_MKV);
  EXPECT_GE(MostOutputBytes(request), mp4 + pixels * 3);
  request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
  // Latents of TI2V-5B: 48 channels, 16 x 16 x 4 pixels each, in float32.
  EXPECT_GE(MostOutputBytes(request), mp4 + pixels * 3 + 48 * 31 * 44 * 80 * 4);
  request.set_num_frames(1);
  request.clear_outputs();
  request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
  EXPECT_GE(MostOutputBytes(request), uint64_t{48 * 44 * 80 * 4}) << "one latent frame is whole";
}

TEST_F(DiskReserveTest, RefusesWhatWouldTakeTheRoomOfAcceptedJobs) {
  DiskReserve reserve = MakeReserve(100 * kMiB);
  free_ = 100 * kMiB + 2 * one_;
  EXPECT_TRUE(reserve.Take(JobOf("jobs/a")).ok());
  EXPECT_TRUE(reserve.Take(JobOf("jobs/b")).ok());
  const absl::Status refused = reserve.Take(JobOf("jobs/c"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused), kReasonDiskReserve);
  EXPECT_EQ(RetryDelayOf(refused), absl::Seconds(30));
  EXPECT_EQ(MetadataOf(refused)["free_bytes"], absl::StrCat(*free_));
  EXPECT_EQ(MetadataOf(refused)["needed_bytes"], absl::StrCat(*free_ + one_));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("2 accepted jobs"));
  EXPECT_EQ(reserve.reserved_bytes(), 100 * kMiB + 2 * one_);

  reserve.Release("jobs/b");
  reserve.Release("jobs/unknown");
  EXPECT_TRUE(reserve.Take(JobOf("jobs/c")).ok());
  // The end of a job, whose files are on the disk by then.
  wan::v1::Job ended = JobOf("jobs/a");
  ended.set_state(wan::v1::JOB_STATE_FAILED);
  reserve.OnJobState(ended, wan::v1::JOB_STATE_RUNNING);
  EXPECT_EQ(reserve.reserved_bytes(), 100 * kMiB + one_);
  free_ = std::nullopt;
  EXPECT_TRUE(reserve.Take(JobOf("jobs/d")).ok()) << "the free bytes are not known";
}

TEST_F(DiskReserveTest, RecoveredJobsHaveTheirPartOnce) {
  DiskReserve reserve = MakeReserve(0);
  free_ = 2 * one_ - 1;
  reserve.OnJobState(JobOf("jobs/a"), wan::v1::JOB_STATE_UNSPECIFIED);
  wan::v1::Job running = JobOf("jobs/a");
  running.set_state(wan::v1::JOB_STATE_RUNNING);
  reserve.OnJobState(running, wan::v1::JOB_STATE_QUEUED);
  EXPECT_EQ(reserve.reserved_bytes(), one_);
  EXPECT_FALSE(reserve.Take(JobOf("jobs/b")).ok());
}

TEST_F(DiskReserveTest, WhatEarlierFilesTookRefinesTheEstimate) {
  DiskReserve reserve = MakeReserve(0);
  const auto complete = [&](uint64_t bytes) {
    wan::v1::Job job = JobOf("jobs/done");
    job.set_state(wan::v1::JOB_STATE_COMPLETED);
    job.add_artifacts()->set_size_bytes(bytes);
    job.mutable_artifacts(0)->set_kind(wan::v1::OUTPUT_KIND_MP4);
    reserve.OnJobState(job, wan::v1::JOB_STATE_RUNNING);
  };
  const auto needed = [&] {
    free_ = 0;
    return std::stoull(MetadataOf(reserve.Take(JobOf("jobs/x")))["needed_bytes"]);
  };
  for (int i = 0; i < 3; ++i) complete(4 * kMiB);
  EXPECT_EQ(needed(), one_) << "three files say little";
  complete(5 * kMiB);
  const uint64_t pixels = uint64_t{1280} * 704 * 121;
  EXPECT_NEAR(static_cast<double>(needed()), static_cast<double>(one_ - pixels * 3 / 2 + 10 * kMiB),
              10.0);
  complete(pixels);  // more than half of the most
  EXPECT_EQ(needed(), one_) << "never more than a file can take";
  for (int i = 0; i < 16; ++i) complete(kMiB);
  EXPECT_LT(needed(), one_ / 2);
  wan::v1::Job other = JobOf("jobs/x");
  other.mutable_request()->set_model("other");
  EXPECT_EQ(MetadataOf(reserve.Take(other))["needed_bytes"], absl::StrCat(one_));
}

TEST_F(DiskReserveTest, ADiskThatWasShortHasRoomAgainWhenATenthMoreIsFree) {
  DiskReserve reserve = MakeReserve(100 * kMiB);
  EXPECT_TRUE(reserve.CheckRoom().ok()) << "nobody knows";
  free_ = 100 * kMiB;
  EXPECT_TRUE(reserve.CheckRoom().ok());
  free_ = 100 * kMiB - 1;
  const absl::Status status = reserve.CheckRoom();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("has 100.0 MiB free; 110.0 MiB must be free"));
  free_ = 110 * kMiB - 1;
  EXPECT_FALSE(reserve.CheckRoom().ok());
  free_ = 110 * kMiB;
  EXPECT_TRUE(reserve.CheckRoom().ok());
  free_ = 100 * kMiB;
  EXPECT_TRUE(reserve.CheckRoom().ok()) << "the lower limit counts again";
}

TEST_F(DiskReserveTest, TheRoomOfAcceptedJobsAndANewReserveCount) {
  DiskReserve reserve = MakeReserve(100 * kMiB);
  free_ = 100 * kMiB + one_;
  ASSERT_TRUE(reserve.Take(JobOf("jobs/a")).ok());
  EXPECT_TRUE(reserve.CheckRoom().ok());
  free_ = *free_ - 1;
  EXPECT_FALSE(reserve.CheckRoom().ok());
  reserve.SetReserve(10 * kMiB);
  EXPECT_TRUE(reserve.CheckRoom().ok());
}

}  // namespace
}  // namespace wan::server
