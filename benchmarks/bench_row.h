// A measured row of any command of wan_bench, printed as a line of JSON or a row of a table.
// docs/measured/performance.md has the fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace wan {

// The precision of work whose parts have different ones.
inline constexpr char kMixed[] = "mixed";

// The work of one call, counted from shapes and not measured.
struct Work {
  double product_flop = 0;    // floating-point operations of matrix products and convolutions
  double attention_flop = 0;  // floating-point operations of self-attention
  double bytes = 0;           // read from and written to the device's memory, each operand once
  double upload_bytes = 0;    // copied from locked host memory to the device
  double download_bytes = 0;  // copied the other way
  // The precision whose ceilings apply: "bf16", "fp16", "tf32" or "fp32"; kMixed if parts differ,
  // and then FloorSeconds returns nullopt.
  std::string precision = "bf16";

  double flop() const { return product_flop + attention_flop; }
};

// Seconds of one call.
struct Timing {
  double seconds = 0;  // the median, or the mean of calls back to back
  double least = 0;
  double most = 0;
  int64_t calls = 0;
};

// The GPU's state during the measurement; a figure that could not be read is absent.
struct CardState {
  std::optional<double> sm_clock_mhz;         // mean
  std::optional<double> power_watts;          // mean
  std::optional<double> temperature_celsius;  // highest
  // All reasons that held the clocks down at any moment; absent if none could be read.
  std::optional<std::vector<std::string>> throttle_reasons;
};

// A figure that only one command has.
struct Figure {
  std::string key;
  std::variant<bool, int64_t, double, std::string> value;
};

struct BenchRow {
  // Identifies the row among those of its command, also in a later run: model, video, precision.
  std::string name;
  std::optional<Timing> timing;
  std::optional<Work> work;
  CardState card;
  std::vector<Figure> figures;

  // Session::Add fills in the fields below.
  std::string command;
  std::string device;  // "NVIDIA H200", or the processor's name
  // FloorSeconds of the work, unless it is there already: parts that run one after the
  // other have the sum of theirs.
  std::optional<double> ceiling_seconds;

  // The call's time divided by the ceiling's; 1 is the best possible.
  std::optional<double> Ratio() const;
};

// Adds `part` to a row of parts that run one after the other: its work and, as long as every part's
// floor is known, `floor` to ceiling_seconds.
void AddPart(const Work& part, const std::optional<double>& floor, BenchRow& row);

// One line of JSON, without the newline.
std::string ToJsonLine(const BenchRow& row);

// Return the table's header (two lines) and one row, each with its newline.
std::string TableHeader();
std::string TableRow(const BenchRow& row);

}  // namespace wan
