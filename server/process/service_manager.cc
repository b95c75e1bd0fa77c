#include "server/process/service_manager.h"

#include <systemd/sd-daemon.h>

#include <cstdint>
#include <string>

namespace wan::server {
namespace {

// Ignore failures: the service manager then acts as if no message had been sent.
void Tell(const std::string& state) { sd_notify(/*unset_environment=*/0, state.c_str()); }

}  // namespace

void TellReady(std::string_view status) { Tell("READY=1\nSTATUS=" + std::string(status)); }

void TellStopping() { Tell("STOPPING=1"); }

std::optional<std::chrono::microseconds> WatchdogInterval() {
  uint64_t longest = 0;
  if (sd_watchdog_enabled(/*unset_environment=*/0, &longest) <= 0) return std::nullopt;
  return std::chrono::microseconds(longest / 2);
}

void TellAlive() { Tell("WATCHDOG=1"); }

}  // namespace wan::server
