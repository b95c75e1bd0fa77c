#include "engine/pipeline/frame_download.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>

#include <utility>

#include "engine/device/pinned_memory.h"

namespace wan {
namespace {

// Converts frames [3, n, H, W] to pictures [n, H, W, 3], kByte, on the frames' device. Upstream's
// rule is (x + 1) / 2 * 255, truncated, not rounded.
at::Tensor ToBytes(const at::Tensor& frames) {
  return frames.clamp(-1, 1)
      .add(1)
      .div_(2)
      .mul_(255)
      .to(at::kByte)
      .permute({1, 2, 3, 0})
      .contiguous();
}

// Passes `bytes`, [n, H, W, 3] in host memory, to the sink frame by frame.
absl::Status HandOnFrames(const at::Tensor& bytes, const FrameDownload::Sink& sink) {
  const size_t size = static_cast<size_t>(bytes.numel() / bytes.size(0));
  const uint8_t* data = bytes.const_data_ptr<uint8_t>();
  for (int64_t i = 0; i < bytes.size(0); ++i, data += size) {
    if (absl::Status status = sink({data, data + size}); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

// A chunk of frames that is being copied to the host.
struct FrameDownload::Buffer {
  explicit Buffer(c10::DeviceType type) : arrival(type) {}

  at::Tensor memory;  // pinned, large enough for most_frames frames
  at::Tensor device;  // source of the running copy; undefined if no copy runs
  at::Tensor host;    // destination of the running copy, a part of `memory`
  c10::Event arrival;
};

// The stream on which copies run. Each copy waits until its chunk is converted. Decoding does not
// wait for the copies.
class FrameDownload::CopyQueue {
 public:
  explicit CopyQueue(at::Device device)
      : device_(device),
        stream_(c10::impl::VirtualGuardImpl(device.type())
                    .getStreamFromGlobalPool(device, /*isHighPriority=*/true)) {}

  const at::Device& device() const { return device_; }

  void Copy(Buffer& buffer) const {
    c10::Event converted(device_.type());
    converted.record(at::accelerator::getCurrentStream(device_.index()));
    converted.block(stream_);
    const c10::StreamGuard guard(stream_);
    buffer.host.copy_(buffer.device, /*non_blocking=*/true);
    buffer.arrival.record(stream_);
  }

 private:
  const at::Device device_;
  const c10::Stream stream_;
};

FrameDownload::FrameDownload(at::Device device, int64_t most_frames, Sink sink)
    : most_frames_(most_frames),
      sink_(std::move(sink)),
      queue_(device.is_cpu() ? nullptr : std::make_unique<CopyQueue>(device)) {}

FrameDownload::~FrameDownload() {
  for (const std::unique_ptr<Buffer>& buffer : buffers_) {
    if (buffer == nullptr || !buffer->device.defined()) continue;
    try {
      buffer->arrival.synchronize();
    } catch (const c10::Error&) {
      // Ignore the error: the device is lost, so no copy runs any more, and the next call to the
      // device reports it.
    }
  }
}

absl::Status FrameDownload::Add(const at::Tensor& frames) {
  // Frames that were assembled from tiles are in host memory already.
  if (frames.is_cpu()) return HandOnFrames(ToBytes(frames), sink_);
  std::unique_ptr<Buffer>& slot = buffers_[next_];
  if (slot == nullptr) slot = std::make_unique<Buffer>(queue_->device().type());
  next_ = 1 - next_;
  Buffer& buffer = *slot;  // free, because the previous call handed on its frames
  const at::Tensor bytes = ToBytes(frames);
  const auto size = static_cast<int64_t>(bytes.nbytes());
  if (!buffer.memory.defined()) {
    // Allocate memory for a full chunk even if the first chunk is smaller, because pinning more
    // memory later takes time.
    buffer.memory = AllocateHostMemory(size / bytes.size(0) * most_frames_, queue_->device());
  }
  buffer.host = buffer.memory.narrow(0, 0, size).view(bytes.sizes());
  buffer.device = bytes;
  queue_->Copy(buffer);
  if (buffers_[next_] == nullptr) return absl::OkStatus();
  return HandOn(*buffers_[next_]);
}

absl::Status FrameDownload::Finish() {
  const std::unique_ptr<Buffer>& last = buffers_[1 - next_];
  return last == nullptr ? absl::OkStatus() : HandOn(*last);
}

absl::Status FrameDownload::HandOn(Buffer& buffer) {
  if (!buffer.device.defined()) return absl::OkStatus();
  buffer.arrival.synchronize();
  buffer.device.reset();
  return HandOnFrames(buffer.host, sink_);
}

}  // namespace wan
