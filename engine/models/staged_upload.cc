#include "engine/models/staged_upload.h"

#include <ATen/Parallel.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace wan {
namespace {

// Has the kernel map all pages of a run at once rather than one fault after the other.
void MapPages(const std::byte* begin, size_t bytes) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t into_page = reinterpret_cast<uintptr_t>(begin) % page;
  // Only a hint: where the kernel does not know it, reading maps them.
  madvise(const_cast<std::byte*>(begin - into_page), bytes + into_page, MADV_POPULATE_READ);
}

}  // namespace

StagedUpload::StagedUpload(WeightMover& mover, int64_t chunk_bytes)
    : mover_(mover), chunk_bytes_(chunk_bytes), lanes_(std::max(at::get_num_threads(), 1)) {}

StagedUpload::~StagedUpload() {
  for (const Lane& lane : lanes_) {
    for (const Buffer& buffer : lane.buffers) mover_.WaitFor(buffer.departure);
  }
}

void StagedUpload::Copy(std::span<const std::byte> source, const at::Tensor& device) {
  const auto bytes = static_cast<int64_t>(source.size());
  const int64_t chunks = (bytes + chunk_bytes_ - 1) / chunk_bytes_;
  std::vector<WeightMover::Mark> arrivals(chunks);
  const WeightMover::Mark after = mover_.MarkCompute();
  at::parallel_for(0, chunks, /*grain_size=*/1, [&](int64_t begin, int64_t end) {
    Lane& lane = lanes_[at::get_thread_num()];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * chunk_bytes_;
      const int64_t size = std::min(chunk_bytes_, bytes - first);
      Buffer& buffer = NextBuffer(lane);
      MapPages(source.data() + first, static_cast<size_t>(size));
      std::memcpy(buffer.memory.mutable_data_ptr(), source.data() + first,
                  static_cast<size_t>(size));
      buffer.departure = mover_.CopyToDevice(buffer.memory.narrow(0, 0, size),
                                             device.narrow(0, first, size), after);
      arrivals[i] = buffer.departure;
    }
  });
  for (const WeightMover::Mark& arrival : arrivals) mover_.ComputeAfter(arrival);
}

StagedUpload::Buffer& StagedUpload::NextBuffer(Lane& lane) {
  Buffer& buffer = lane.buffers[lane.next];
  lane.next = (lane.next + 1) % lane.buffers.size();
  mover_.WaitFor(buffer.departure);
  if (!buffer.memory.defined()) buffer.memory = mover_.AllocateHost(chunk_bytes_);
  return buffer;
}

}  // namespace wan
