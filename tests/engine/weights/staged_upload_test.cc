#include "engine/weights/staged_upload.h"

#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/planning/residency_plan.h"
#include "tests/engine/formats/files.h"
#include "tests/engine/weights/slow_mover.h"

namespace wan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

constexpr UploadSettings kSettings = {.threads = 3, .chunk_bytes = 1000, .buffers = 2};

std::shared_ptr<const Bytes> SomeBytes(int64_t count, int salt = 7) {
  Bytes bytes(static_cast<size_t>(count));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * salt + i / 251);
  return std::make_shared<const Bytes>(std::move(bytes));
}

TensorBytes View(const std::shared_ptr<const Bytes>& bytes) {
  return {.bytes = *bytes, .owner = bytes, .file = nullptr};
}

at::Tensor Device(int64_t bytes) { return at::zeros({bytes}, at::kByte); }

bool Holds(const at::Tensor& device, std::span<const std::byte> bytes) {
  // Not memcmp, which wants an address even of nothing.
  return std::ranges::equal(std::span(static_cast<const std::byte*>(device.const_data_ptr()),
                                      static_cast<size_t>(device.nbytes())),
                            bytes);
}

// Plans count them; a room that knows no LibTorch cannot ask.
TEST(StagedUploadTest, BuffersArePlannedAsTheyAre) {
  const UploadSettings settings;
  constexpr int64_t kMostThreads = 16;
  EXPECT_LE(settings.threads, kMostThreads);
  EXPECT_EQ(kReadingBuffersBytes,
            static_cast<uint64_t>(kMostThreads * settings.buffers * settings.chunk_bytes));
}

TEST(StagedUploadTest, EveryByteArrives) {
  SlowMover mover;
  StagedUpload upload(mover, kSettings);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<const Bytes>> sources;
    std::vector<at::Tensor> devices;
    for (const int64_t count : {1, 0, 999, 1000, 1001, 50000, 12345, 7}) {
      sources.push_back(SomeBytes(count, 7 + round));
      devices.push_back(Device(count));
      upload.Copy(View(sources.back()), devices.back());
    }
    ASSERT_TRUE(upload.Arrive().ok());
    for (size_t i = 0; i < sources.size(); ++i) {
      EXPECT_TRUE(Holds(devices[i], *sources[i])) << sources[i]->size();
    }
  }
}

TEST(StagedUploadTest, StagesThroughAFewBuffersWhateverTheSize) {
  SlowMover mover;
  StagedUpload upload(mover, kSettings);
  for (int round = 1; round < 3; ++round) {
    const auto source = SomeBytes(200'000);
    const at::Tensor device = Device(200'000);
    upload.Copy(View(source), device);
    ASSERT_TRUE(upload.Arrive().ok());
    EXPECT_TRUE(Holds(device, *source));
    EXPECT_EQ(mover.copies, 200 * round);
    EXPECT_EQ(mover.host_bytes, 3 * 2 * 1000);
  }
}

TEST(StagedUploadTest, ThreadsGoOnWithTheNextTensors) {
  SlowMover mover;
  absl::Mutex mutex;
  int queued = 0;
  // A chunk of each of three tensors must be on its way before any of the copies is queued.
  mover.on_copy = [&] {
    const absl::MutexLock lock(&mutex);
    ++queued;
    const auto all = [&] { return queued == 3; };
    EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&all), absl::Seconds(30)));
  };
  StagedUpload upload(mover, kSettings);
  const auto source = SomeBytes(10);
  const std::vector<at::Tensor> devices = {Device(10), Device(10), Device(10)};
  for (const at::Tensor& device : devices) upload.Copy(View(source), device);
  ASSERT_TRUE(upload.Arrive().ok());
  for (const at::Tensor& device : devices) EXPECT_TRUE(Holds(device, *source));
}

TEST(StagedUploadTest, KeepsTheSourceUntilItIsRead) {
  SlowMover mover;
  StagedUpload upload(mover, kSettings);
  auto source = SomeBytes(5000);
  const Bytes expected = *source;
  const std::weak_ptr<const Bytes> alive = source;
  const at::Tensor device = Device(5000);
  upload.Copy(View(source), device);
  source.reset();
  ASSERT_TRUE(upload.Arrive().ok());
  EXPECT_TRUE(Holds(device, expected));
  EXPECT_TRUE(alive.expired());
}

TEST(StagedUploadTest, AFileThatHasBecomeShorterIsAnError) {
  const wan::testing::TempFolder folder;
  const std::string path = folder / "weights";
  wan::testing::WriteFile(path, std::string(20'000, 'w'));
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(path, 8'500);

  SlowMover mover;
  StagedUpload upload(mover, kSettings);
  const auto part = [&](size_t begin, size_t bytes) {
    return TensorBytes{(*file)->bytes().subspan(begin, bytes), *file, file->get()};
  };
  const at::Tensor whole = Device(8'000);
  upload.Copy(part(0, 8'000), whole);
  ASSERT_TRUE(upload.Arrive().ok());
  EXPECT_TRUE(Holds(whole, Bytes(8'000, std::byte{'w'})));

  upload.Copy(part(8'000, 12'000), Device(12'000));
  const absl::Status status = upload.Arrive();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(path), HasSubstr("was 20000 bytes long")));
  upload.Copy(part(0, 8'000), whole);
  EXPECT_EQ(upload.Arrive(), status);
}

TEST(StagedUploadTest, WhatTheDeviceThrowsComesOutOfArrive) {
  SlowMover mover;
  std::atomic<int> left = 5;
  mover.on_copy = [&] { TORCH_CHECK(--left > 0, "the device is lost"); };
  StagedUpload upload(mover, kSettings);
  const auto source = SomeBytes(100'000);
  upload.Copy(View(source), Device(100'000));
  EXPECT_THROW(upload.Arrive().IgnoreError(), c10::Error);
  EXPECT_LE(mover.queued, 5);
  EXPECT_THROW(upload.Arrive().IgnoreError(), c10::Error);
}

// Every chunk needs a permission, and this thread gives none before the upload is about to end. So
// the threads get at most a chunk each for every time that they and this one take turns, however
// late the ending thread is scheduled.
TEST(StagedUploadTest, GivesUpWhatNobodyWaitedFor) {
  SlowMover mover;
  absl::Mutex mutex;
  int permitted = 0;
  int waiting = 0;
  bool ending = false;
  bool ended = false;
  mover.on_copy = [&] {
    const absl::MutexLock lock(&mutex);
    ++waiting;
    const auto may_go = [&] { return permitted > 0; };
    mutex.Await(absl::Condition(&may_go));
    --waiting;
    --permitted;
  };
  std::optional<StagedUpload> upload(std::in_place, mover, kSettings);
  const auto source = SomeBytes(2'000'000);
  for (int i = 0; i < 100; ++i) upload->Copy(View(source), Device(2'000'000));
  std::thread end([&] {
    {
      const absl::MutexLock lock(&mutex);
      ending = true;
    }
    upload.reset();
    const absl::MutexLock lock(&mutex);
    ended = true;
  });
  {
    const absl::MutexLock lock(&mutex);
    const auto may_permit = [&] { return ended || (ending && waiting > permitted); };
    while (true) {
      mutex.Await(absl::Condition(&may_permit));
      if (ended) break;
      ++permitted;
    }
  }
  end.join();
  EXPECT_LT(mover.queued, 200'000);
}

}  // namespace
}  // namespace wan
