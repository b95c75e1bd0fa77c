// What a command of wan_bench measured: one form for all of them, as a line of JSON and as a row of
// a table. docs/measured/performance.md has the fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace wan {

// The precision of work whose parts have several.
inline constexpr char kMixed[] = "mixed";

// What one call has to do, whoever does it. All of it is counted from shapes, not measured.
struct Work {
  double product_flop = 0;    // floating-point operations of matrix products and convolutions
  double attention_flop = 0;  // those of self-attention
  double bytes = 0;           // read from and written to the device's memory, each operand once
  double upload_bytes = 0;    // copied from locked host memory to the device
  double download_bytes = 0;  // copied the other way
  // The precision whose ceilings hold: "bf16", "fp16", "tf32" or "fp32"; kMixed where parts differ,
  // and FloorSeconds knows none.
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

// The GPU while it was measured; a figure that could not be read is absent.
struct CardState {
  std::optional<double> sm_clock_mhz;         // mean
  std::optional<double> power_watts;          // mean
  std::optional<double> temperature_celsius;  // highest
  // Everything that held the clocks down at any moment; absent where nothing was read.
  std::optional<std::vector<std::string>> throttle_reasons;
};

// A figure that only its command has.
struct Figure {
  std::string key;
  std::variant<bool, int64_t, double, std::string> value;
};

struct BenchRow {
  // Tells the row from the others of its command, also in a later run: model, video, precision.
  std::string name;
  std::optional<Timing> timing;
  std::optional<Work> work;
  CardState card;
  std::vector<Figure> figures;

  // Session::Add fills these in.
  std::string command;
  std::string device;  // "NVIDIA H200", or the processor's name
  // FloorSeconds of the work, unless it is there already: parts that run one after the
  // other have the sum of theirs.
  std::optional<double> ceiling_seconds;

  // How often the ceiling's time the call took: 1 is the best there is.
  std::optional<double> Ratio() const;
};

// Adds `part`, whose floor by the run's ceilings is `floor`, to a row of parts that run one after
// the other: its work, and its ceiling_seconds as long as every part's floor is known.
void AddPart(const Work& part, const std::optional<double>& floor, BenchRow& row);

// One line of JSON, without the newline.
std::string ToJsonLine(const BenchRow& row);

// The table's header, two lines, and one row of it, each with its newline.
std::string TableHeader();
std::string TableRow(const BenchRow& row);

}  // namespace wan
