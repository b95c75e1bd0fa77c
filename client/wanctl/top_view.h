// Renders the screen of 'wanctl top' as text.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/wanctl/screen.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client {

// The server's latest answers, for the screen.
struct TopState {
  // "HOST:PORT".
  std::string server;
  absl::Time time;
  wan::v1::ServerInfo info;
  // Running jobs, then waiting ones, in the order in which they will run.
  std::vector<wan::v1::Job> jobs;
  wan::v1::WatchDevicesResponse devices;
  // The error because of which the other members are older than `time`; empty: they are current.
  std::string problem;
};

// Sorts jobs for TopState: running ones first, then by position in the queue.
void SortForTop(std::vector<wan::v1::Job>& jobs);

// Returns exactly size.rows lines of at most size.columns characters (0: unlimited), without a
// final newline. The last line has the number of jobs that do not fit. Pure.
std::string RenderTop(const TopState& state, Screen::Size size, bool colours);

}  // namespace wan::client
