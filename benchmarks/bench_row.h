// A measured row of a wan_bench command, printed as a line of JSON or as a row of a table. The JSON
// object has each member below that is known, under the member's name, and "least_seconds",
// "most_seconds", "flop_per_second", "bytes_per_second" and "ratio".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace wan {

// The precision of work whose parts have different precisions.
inline constexpr char kMixed[] = "mixed";

// The work of one measured call, computed from shapes.
struct Work {
  double product_flop = 0;    // floating-point operations of matrix products and convolutions
  double attention_flop = 0;  // floating-point operations of self-attention
  double bytes = 0;           // device memory read and written; each operand counts once
  double upload_bytes = 0;    // bytes copied from pinned host memory to the device
  double download_bytes = 0;  // bytes copied from the device to the host
  // The precision whose ceilings apply: "bf16", "fp16", "tf32" or "fp32". kMixed if the parts of
  // the work have different precisions; then FloorSeconds returns nullopt.
  std::string precision = "bf16";

  double flop() const { return product_flop + attention_flop; }
};

// The seconds that one call takes.
struct Timing {
  double seconds = 0;  // median of single calls, or mean of calls made back to back
  double least = 0;
  double most = 0;
  int64_t calls = 0;
};

// The GPU's state during a measurement. A figure that cannot be read is absent.
struct CardState {
  std::optional<double> sm_clock_mhz;         // mean of all samples
  std::optional<double> power_watts;          // mean of all samples
  std::optional<double> temperature_celsius;  // highest of all samples
  // All reasons that reduced the clocks at any time during the measurement; absent if they cannot
  // be read.
  std::optional<std::vector<std::string>> throttle_reasons;
};

// An additional figure of a row, which only one command measures.
struct Figure {
  std::string key;
  std::variant<bool, int64_t, double, std::string> value;
};

struct BenchRow {
  // Identifies the row among all rows of its command: model, video, precision. The name is the same
  // in every run.
  std::string name;
  std::optional<Timing> timing;
  std::optional<Work> work;
  CardState card;
  std::vector<Figure> figures;

  // Session::Add sets the following fields.
  std::string command;
  std::string device;  // for example "NVIDIA H200"; for a CPU the processor's name
  // The result of FloorSeconds for the work. Session::Add keeps a ceiling_seconds that is already
  // set: a row made of parts has the sum of the parts' floors.
  std::optional<double> ceiling_seconds;

  // Returns the time of the call divided by ceiling_seconds; 1 is the best possible result.
  std::optional<double> Ratio() const;
};

// Adds the work of `part` to a row whose parts run one after the other. Adds `floor` to
// ceiling_seconds as long as the floors of all parts are known.
void AddPart(const Work& part, const std::optional<double>& floor, BenchRow& row);

// Returns one line of JSON, without newline.
std::string ToJsonLine(const BenchRow& row);

// Return the table's header (two lines) and one row of it, with newlines.
std::string TableHeader();
std::string TableRow(const BenchRow& row);

}  // namespace wan
