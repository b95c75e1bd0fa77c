// The commands of demo_evaluate. Results go to `out`, everything else to `err`; each returns an
// exit code of wanctl's.
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
  // Requested by Ctrl-C.
  std::stop_token stop = {};
  // How retries wait; thread-safe.
  client::BackoffClock& clock = client::SystemBackoffClock();
};

struct DetectOptions {
  std::string scenes;
  std::string clips;  // safetensors with a tensor "video": U8, [clips, frames, height, width, 3]
  std::string reference;  // what the clips should be, of the same shape; may be empty
  std::string json;       // file to write; may be empty
};

struct CompareOptions {
  std::string a;  // reports
  std::string b;
};

int Detect(const DetectOptions& options, const Environment& environment);
int Run(const RunOptions& options, const Environment& environment);
int Compare(const CompareOptions& options, const Environment& environment);

// A whole command line, without the program's name.
int RunDemoEvaluate(const std::vector<std::string>& args, const Environment& environment);

// "demo_evaluate: TEXT" on `err`.
void Say(const Environment& environment, absl::string_view text);

}  // namespace wan::demo
