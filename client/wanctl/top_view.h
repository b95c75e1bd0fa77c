// Renders the screen of 'wanctl top' as text.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/wanctl/screen.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client {

// The server's latest answers.
struct TopState {
  // "HOST:PORT".
  std::string server;
  absl::Time time;
  wan::v1::ServerInfo info;
  // Running jobs, then waiting ones, in the order in which they will run.
  std::vector<wan::v1::Job> jobs;
  wan::v1::WatchDevicesResponse devices;
  // The error because of which the rest is older than `time`; empty: it is current.
  std::string problem;
};

// Orders jobs as TopState wants them: running ones first, then by their place in the queue.
void SortForTop(std::vector<wan::v1::Job>& jobs);

// Returns exactly size.rows lines of at most size.columns characters, without a newline after the
// last; a size of 0 has no bounds. Jobs that do not fit are counted in the last line. Pure.
std::string RenderTop(const TopState& state, Screen::Size size, bool colours);

}  // namespace wan::client
