// The commands of the program demo_evaluate. Results go to `out`, everything else to `err`; each
// command returns one of wanctl's exit codes.
#pragma once

#include <ostream>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/retry.h"
#include "client/wanctl/exit_code.h"
#include "demo/evaluate/run_plan.h"

namespace wan::demo {

struct Environment {
  std::ostream& out;
  std::ostream& err;
  // Ctrl-C requests this stop.
  std::stop_token stop = {};
  // The clock by which retries wait; it must be thread-safe.
  client::BackoffClock& clock = client::SystemBackoffClock();
};

struct DetectOptions {
  std::string scenes;
  // A safetensors file with a tensor "video": U8, [clips, frames, height, width, 3].
  std::string clips;
  std::string reference;  // a file with what the clips should be, of the same shape; empty: none
  std::string json;       // the file to write; empty: none
};

struct CompareOptions {
  std::string a;  // the first of the two reports
  std::string b;
};

struct ColumnsOptions {
  std::vector<std::string> runs;  // folders of runs; the first one is what PSNR compares with
};

int Detect(const DetectOptions& options, const Environment& environment);
int Run(const RunOptions& options, const Environment& environment);
int Compare(const CompareOptions& options, const Environment& environment);
int Columns(const ColumnsOptions& options, const Environment& environment);

// Runs a whole command line; `args` are the arguments without the program's name.
int RunDemoEvaluate(const std::vector<std::string>& args, const Environment& environment);

// Prints "demo_evaluate: TEXT" on `err`.
void Say(const Environment& environment, absl::string_view text);

}  // namespace wan::demo
