#include "engine/models/staged_upload.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

namespace wan {
namespace {

constexpr int64_t kChunk = 1000;

// A second queue as a thread of its own would be: a copy happens when somebody waits for it, and a
// buffer that is filled again before that shows.
class SlowMover final : public WeightMover {
 public:
  at::Tensor AllocateHost(int64_t bytes) override {
    ++buffers;
    return at::empty({bytes}, at::kByte);
  }
  at::Tensor AllocateDevice(int64_t bytes) override { return at::empty({bytes}, at::kByte); }
  Mark MarkCompute() override { return std::make_shared<int>(0); }
  Mark CopyToDevice(const at::Tensor& host, const at::Tensor& device, const Mark& after) override {
    EXPECT_NE(after, nullptr);
    return std::make_shared<Copy>(Copy{host, device});
  }
  void ComputeAfter(const Mark& copy) override { WaitFor(copy); }
  void WaitFor(const Mark& mark) noexcept override {
    if (mark == nullptr) return;
    auto& copy = *static_cast<Copy*>(mark.get());
    std::call_once(copy.once, [&] {
      std::memcpy(copy.device.mutable_data_ptr(), copy.host.const_data_ptr(), copy.host.nbytes());
      ++copies;
    });
  }
  void CopyToHost(const at::Tensor&, const at::Tensor&) override { FAIL(); }

  std::atomic<int> buffers = 0;
  std::atomic<int> copies = 0;

 private:
  struct Copy {
    Copy(at::Tensor from, at::Tensor to) : host(std::move(from)), device(std::move(to)) {}
    Copy(Copy&& other) noexcept : host(std::move(other.host)), device(std::move(other.device)) {}
    at::Tensor host;
    at::Tensor device;
    std::once_flag once;
  };
};

std::vector<std::byte> SomeBytes(int64_t count) {
  std::vector<std::byte> bytes(static_cast<size_t>(count));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

void ExpectCopied(StagedUpload& upload, int64_t count) {
  const std::vector<std::byte> source = SomeBytes(count);
  const at::Tensor device = at::zeros({count}, at::kByte);
  upload.Copy(source, device);
  EXPECT_EQ(std::memcmp(device.const_data_ptr(), source.data(), source.size()), 0) << count;
}

TEST(StagedUploadTest, EveryByteArrives) {
  SlowMover mover;
  StagedUpload upload(mover, kChunk);
  for (const int64_t count : {1, 999, 1000, 1001, 50000, 12345, 7}) ExpectCopied(upload, count);
}

TEST(StagedUploadTest, StagesThroughAFewBuffersWhateverTheSize) {
  SlowMover mover;
  {
    StagedUpload upload(mover, kChunk);
    ExpectCopied(upload, 200 * kChunk);
    EXPECT_EQ(mover.copies, 200);
    EXPECT_LE(mover.buffers, 2 * at::get_num_threads());
    ExpectCopied(upload, 200 * kChunk);
    EXPECT_LE(mover.buffers, 2 * at::get_num_threads());
  }
}

}  // namespace
}  // namespace wan
