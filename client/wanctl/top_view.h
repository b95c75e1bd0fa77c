// Renders the screen of 'wanctl top' as text.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/wanctl/screen.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client {

// The latest answers of the server, for the screen.
struct TopState {
  // The server's address, "HOST:PORT".
  std::string server;
  absl::Time time;
  wan::v1::ServerInfo info;
  // The running jobs, then the waiting ones in the order in which they will run.
  std::vector<wan::v1::Job> jobs;
  wan::v1::WatchDevicesResponse devices;
  // The error because of which the other members are older than `time`; empty: they are current.
  std::string problem;
};

// Puts jobs into the order of TopState: the running ones first, then by position in the queue.
void SortForTop(std::vector<wan::v1::Job>& jobs);

// Returns exactly size.rows lines of at most size.columns characters (0: of any length), without a
// final newline. The last line says how many jobs do not fit on the screen. A pure function.
std::string RenderTop(const TopState& state, Screen::Size size, bool colours);

}  // namespace wan::client
