// State shared by wan_bench's commands: device, clock, ceilings of this run, and the output of
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
  bool json = false;     // prints rows on stdout as JSON lines instead of a table
  std::string rows;      // file to which each row is also written as a JSON line
  std::string ceilings;  // file from `wan_bench ceilings`; empty: measured when needed, on a GPU
  bool no_ceilings = false;  // measures no ceilings, so that rows have no ratio
};

// How many calls a measurement makes.
struct Repetition {
  int warmup = 0;   // warm-up calls
  int repeats = 1;  // measured calls
  // If above 0, replaces `repeats`: as many calls as take this long, after a third as many
  // additional warm-up calls.
  double seconds = 0;
};

// Not thread-safe.
class Session {
 public:
  Session(std::string command, SessionOptions options);

  // Opens "cpu" or "cuda:N" (loads the plug-in, turns TF32 off) and reads the device's name. Call
  // it once, before anything is computed.
  absl::StatusOr<at::Device> Open(const std::string& device);

  // Reads the ceilings file or, on a GPU without one, measures for some seconds. Rows added later
  // have a ratio. Call it after Open and before any measured allocation.
  absl::Status FindCeilings();
  // As FloorSeconds in ceilings.h; nullopt without ceilings.
  std::optional<double> FloorSeconds(const Work& work) const;

  // Prints the row at once. UNAVAILABLE if the rows file cannot be written.
  absl::Status Add(BenchRow row);

  // Prints a line for people: on stdout with a table, on stderr with JSON.
  void Note(const std::string& line) const;

  // Measures calls that queue work on the device, back to back for at least `seconds`, after a
  // third as many warm-up calls: a card reaches its power limit and temperature only under load.
  // The row has only name, mean time and the card's state.
  BenchRow Sustain(const std::string& name, double seconds, const std::function<void()>& call);

  // Measures calls one by one, waiting for the device after each. The row has only name, median and
  // the card's state. Returns the first error of a call.
  absl::StatusOr<BenchRow> Repeat(const std::string& name, const Repetition& repetition,
                                  const std::function<absl::Status()>& call);

  // Traces one call and adds a row for each operator with at least 0.1 % of its time, longest
  // first. Returns the call's error.
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

// Seconds since `start`; the caller must synchronize the device before both moments.
double SecondsSince(std::chrono::steady_clock::time_point start);

// Bytes handed out by LibTorch's allocator on a device; 0 on a CPU. PeakBytes counts from the last
// ResetPeakBytes.
int64_t CurrentBytes(at::Device device);
int64_t PeakBytes(at::Device device);
void ResetPeakBytes(at::Device device);

// Adds the figures "resident_gib" and "activations_gib" to a row; nothing on a CPU. `resident` is
// the number of bytes on the device before the work.
void AddMemory(at::Device device, int64_t resident, BenchRow& row);

}  // namespace wan
