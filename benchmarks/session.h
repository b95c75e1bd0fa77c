// The shared state of wan_bench's commands: device, clock, ceilings of this run, and the output of
// rows.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/bench_row.h"
#include "benchmarks/bench_shape.h"
#include "benchmarks/ceilings.h"
#include "benchmarks/op_trace.h"
#include "engine/monitor/nvml.h"

namespace wan {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// Options of all commands.
struct SessionOptions {
  bool json = false;     // rows on stdout as lines of JSON instead of a table
  std::string rows;      // file that also gets each row as a line of JSON
  std::string ceilings;  // file of `wan_bench ceilings`; empty: a GPU's are measured when needed
  bool no_ceilings = false;  // measures no ceilings, so rows have no ratio
};

// The number of calls in a measurement.
struct Repetition {
  int warmup = 0;   // warm-up calls
  int repeats = 1;  // measured calls
  // If above 0, it replaces `repeats`: enough calls count to take at least this long, after a third
  // as many more warm-up calls.
  double seconds = 0;
};

// Not thread-safe.
class Session {
 public:
  Session(std::string command, SessionOptions options);

  // Opens "cpu" or "cuda:N" (with the plug-in loaded and TF32 off) and reads the device's name.
  // Call it once, before anything is computed or measured.
  absl::StatusOr<at::Device> Open(const std::string& device);

  // Reads the file of ceilings or, on a GPU without such a file, measures for some seconds. Rows
  // that are added afterwards have a ratio. Call it after Open, and before any allocation that is
  // measured.
  absl::Status FindCeilings();
  // FloorSeconds of ceilings.h; nullopt without ceilings.
  std::optional<double> FloorSeconds(const Work& work) const;

  // Prints the row at once. UNAVAILABLE if the file of rows cannot be written.
  absl::Status Add(BenchRow row);

  // Prints a line for people: on stdout beside a table, on stderr beside JSON.
  void Note(const std::string& line) const;

  // Measures calls that queue work on the device, back to back for at least `seconds`, after a
  // third as many warm-up calls, because a card reaches its power limit and temperature only under
  // load. The row has only the name, the mean time and the card's state.
  BenchRow Sustain(const std::string& name, double seconds, const std::function<void()>& call);

  // Measures calls one by one, each until the device is done. The row has only the name, the median
  // and the card's state. Returns the first error of a call.
  absl::StatusOr<BenchRow> Repeat(const std::string& name, const Repetition& repetition,
                                  const std::function<absl::Status()>& call);

  // Traces one call and adds a row for each operator that takes at least 0.1 % of its time, longest
  // first. Returns the error of the call.
  absl::Status Trace(const std::string& name, const std::function<absl::Status()>& call);

  at::Device device() const { return device_; }
  const std::string& device_name() const { return device_name_; }
  const NvmlDevice* card() const { return card_.get(); }

 private:
  const std::string command_;
  const SessionOptions options_;
  at::Device device_ = at::kCPU;
  std::string device_name_;
  std::unique_ptr<NvmlDevice> card_;
  std::optional<Ceilings> ceilings_;
  bool has_header_ = false;
};

void Synchronize(at::Device device);

// Seconds on the host's clock; the caller synchronizes before and after.
double SecondsSince(std::chrono::steady_clock::time_point start);

// Bytes that LibTorch's allocator has handed out on a device; 0 on a CPU. The peak is counted from
// the last ResetPeakBytes.
int64_t CurrentBytes(at::Device device);
int64_t PeakBytes(at::Device device);
void ResetPeakBytes(at::Device device);

// The figures "resident_gib" and "activations_gib" of a row; none on a CPU. `resident` are the
// bytes on the device before the work.
void AddMemory(at::Device device, int64_t resident, BenchRow& row);

}  // namespace wan
