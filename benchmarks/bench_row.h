// A measured row of a wan_bench command, printed as a JSON line or as a row of a table.
// docs/measured/performance.md describes the fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace wan {

// Precision of work whose parts differ in it.
inline constexpr char kMixed[] = "mixed";

// The work of one call, computed from shapes.
struct Work {
  double product_flop = 0;    // floating-point operations of matrix products and convolutions
  double attention_flop = 0;  // floating-point operations of self-attention
  double bytes = 0;           // bytes read from and written to device memory, each operand once
  double upload_bytes = 0;    // bytes copied from pinned host memory to the device
  double download_bytes = 0;  // bytes copied from the device to the host
  // Precision whose ceilings apply: "bf16", "fp16", "tf32" or "fp32"; kMixed if parts differ, in
  // which case FloorSeconds returns nullopt.
  std::string precision = "bf16";

  double flop() const { return product_flop + attention_flop; }
};

// Seconds of one call.
struct Timing {
  double seconds = 0;  // median, or mean of calls made back to back
  double least = 0;
  double most = 0;
  int64_t calls = 0;
};

// The GPU's state during a measurement; unreadable figures are absent.
struct CardState {
  std::optional<double> sm_clock_mhz;         // mean
  std::optional<double> power_watts;          // mean
  std::optional<double> temperature_celsius;  // highest
  // All reasons that reduced the clocks at any moment; absent if they could not be read.
  std::optional<std::vector<std::string>> throttle_reasons;
};

// A figure of one command only.
struct Figure {
  std::string key;
  std::variant<bool, int64_t, double, std::string> value;
};

struct BenchRow {
  // Identifies the row within its command, also across runs: model, video, precision.
  std::string name;
  std::optional<Timing> timing;
  std::optional<Work> work;
  CardState card;
  std::vector<Figure> figures;

  // Session::Add sets the fields below.
  std::string command;
  std::string device;  // "NVIDIA H200", or the processor's name
  // FloorSeconds of the work. If it is already set it is kept: a row made of parts has the sum of
  // their floors.
  std::optional<double> ceiling_seconds;

  // Time of the call divided by ceiling_seconds; 1 is the best possible.
  std::optional<double> Ratio() const;
};

// Adds `part` to a row whose parts run one after the other: its work, and `floor` to
// ceiling_seconds as long as all floors are known.
void AddPart(const Work& part, const std::optional<double>& floor, BenchRow& row);

// Returns one line of JSON, without newline.
std::string ToJsonLine(const BenchRow& row);

// Return the table's header (two lines) and a row, with newlines.
std::string TableHeader();
std::string TableRow(const BenchRow& row);

}  // namespace wan
