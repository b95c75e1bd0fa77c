// The shared parts of wan_bench's commands: the device, the ceilings of this run, and the output of
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

// The options that all commands have.
struct SessionOptions {
  bool json = false;         // prints rows on stdout as lines of JSON, not as a table
  std::string rows;          // a file to which each row is also written as a line of JSON
  std::string ceilings;      // written by `wan_bench ceilings`; empty: measured on a GPU if needed
  bool no_ceilings = false;  // measures no ceilings; rows then have no ratio
};

// Numbers of calls for a measurement.
struct Repetition {
  int warmup = 0;   // number of calls before the measurement
  int repeats = 1;  // number of calls that are measured
  // If `seconds` is above 0, it replaces `repeats`: calls are measured for this many seconds, after
  // warm-up calls for a third of that time.
  double seconds = 0;
};

// Not thread-safe.
class Session {
 public:
  Session(std::string command, SessionOptions options);

  // Opens "cpu" or "cuda:N": loads the plug-in, turns TF32 off, and reads the device's name. Call
  // Open once, before anything is computed.
  absl::StatusOr<at::Device> Open(const std::string& device);

  // Reads the file of ceilings; without a file, on a GPU, measures them for some seconds. Rows that
  // are added afterwards have a ratio. Call FindCeilings after Open, and before any allocation that
  // is measured.
  absl::Status FindCeilings();
  // Returns what FloorSeconds (ceilings.h) returns for the session's ceilings; nullopt if the
  // session has no ceilings.
  std::optional<double> FloorSeconds(const Work& work) const;

  // Completes the row and prints it at once. UNAVAILABLE if the file of rows cannot be written.
  absl::Status Add(BenchRow row);

  // Prints a line for people: on stdout if rows are a table, on stderr if they are JSON.
  void Note(const std::string& line) const;

  // Measures calls that queue work on the device. The calls run back to back for at least
  // `seconds`, after a third as many warm-up calls, because a card reaches its power limit and
  // temperature only under load. The row has only its name, the mean time and the card's state.
  BenchRow Sustain(const std::string& name, double seconds, const std::function<void()>& call);

  // Measures calls one by one, and waits for the device after each. The row has only its name, the
  // median time and the card's state. If a call fails, returns the first error.
  absl::StatusOr<BenchRow> Repeat(const std::string& name, const Repetition& repetition,
                                  const std::function<absl::Status()>& call);

  // Traces one call, and adds a row for each operator that takes at least 0.1 % of the time,
  // longest first. If the call fails, returns its error.
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

// Returns the seconds since `start`. The caller must synchronize the device before both moments.
double SecondsSince(std::chrono::steady_clock::time_point start);

// Return the bytes that LibTorch's allocator has handed out on a device; 0 on a CPU. PeakBytes is
// the peak since the last ResetPeakBytes.
int64_t CurrentBytes(at::Device device);
int64_t PeakBytes(at::Device device);
void ResetPeakBytes(at::Device device);

// Adds the figures "resident_gib" and "activations_gib" to a row; adds nothing on a CPU. `resident`
// is the number of bytes that were on the device before the work.
void AddMemory(at::Device device, int64_t resident, BenchRow& row);

}  // namespace wan
