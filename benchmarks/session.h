// What every command of wan_bench works with: the device, the clock, the ceilings of this run, and
// the one place that prints rows.
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

// What all commands understand.
struct SessionOptions {
  bool json = false;     // rows on stdout as lines of JSON instead of a table
  std::string rows;      // file that gets each row as a line of JSON, too
  std::string ceilings;  // file of `wan_bench ceilings`; empty: a GPU's are measured when needed
  bool no_ceilings = false;  // measures none, and rows have no ratio
};

// How many calls a measurement has.
struct Repetition {
  int warmup = 0;   // calls first that do not count
  int repeats = 1;  // calls that count
  // If above 0: instead of `repeats`, so many calls count that they take at least so long, after a
  // third as many further ones that do not count.
  double seconds = 0;
};

// Not thread-safe.
class Session {
 public:
  Session(std::string command, SessionOptions options);

  // Opens "cpu" or "cuda:N", the latter with the plug-in loaded and TF32 off, and finds out what it
  // is called. Call it once, before anything is computed or measured.
  absl::StatusOr<at::Device> Open(const std::string& device);

  // Reads the file of ceilings or, on a GPU without such a file, measures for some seconds. Rows
  // that are added afterwards have their ratio. Call it after Open, and before memory that counts
  // is taken.
  absl::Status FindCeilings();
  // Ceilings::FloorSeconds; nullopt without ceilings.
  std::optional<double> FloorSeconds(const Work& work) const;

  // Prints the row at once. UNAVAILABLE if the file of rows cannot be written.
  absl::Status Add(BenchRow row);

  // Prints a line for people: on stdout beside a table, on stderr beside JSON.
  void Note(const std::string& line) const;

  // Measures calls that queue work on the device, back to back for at least `seconds`, after a
  // third as many that warm it up: a card reaches its power limit and its temperature only under
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

// On the host's clock: the caller synchronizes before and after.
double SecondsSince(std::chrono::steady_clock::time_point start);

// Bytes that LibTorch's allocator has given out on a device; 0 on a CPU. The peak is counted from
// the last ResetPeakBytes.
int64_t CurrentBytes(at::Device device);
int64_t PeakBytes(at::Device device);
void ResetPeakBytes(at::Device device);

// The figures "resident_gib" and "activations_gib" of a row; none on a CPU. `resident` is what lay
// on the device before the work.
void AddMemory(at::Device device, int64_t resident, BenchRow& row);

}  // namespace wan
