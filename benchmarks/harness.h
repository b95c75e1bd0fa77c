// What the programs that measure one component share.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/op_trace.h"

namespace wan {

constexpr double kGiB = 1024.0 * 1024 * 1024;

struct FrameSize {
  int64_t width = 1280;
  int64_t height = 704;
};

// "1280x704"; nullopt, after saying so on stderr, for any other text.
std::optional<FrameSize> ParseSize(const std::string& text);

// "cpu", or "cuda:N" with the plug-in loaded and TF32 off.
absl::StatusOr<at::Device> OpenDevice(const std::string& name);

void Synchronize(at::Device device);

// On the host's clock: the caller synchronizes before and after.
double SecondsSince(std::chrono::steady_clock::time_point start);

// Bytes that LibTorch's allocator has given out on a device; 0 on a CPU. The peak is counted from
// the last ResetPeakBytes.
int64_t CurrentBytes(at::Device device);
int64_t PeakBytes(at::Device device);
void ResetPeakBytes(at::Device device);

// "memory: ..." on stdout, nothing on a CPU. `resident` is what lay there before the work.
void PrintMemory(at::Device device, int64_t resident);

// A table of the operators that matter; `seconds` is what the traced work took on the host's clock.
void PrintTrace(double seconds, const std::vector<OpTime>& times);

// Exit code of `run`; errors go to stderr, those that LibTorch throws without their stack.
int ReportErrors(const std::function<absl::Status()>& run);

}  // namespace wan
