// Messages to the service manager that started the process: systemd with Type=notify, through
// libsystemd (sd_notify). Without one, these functions do nothing. Any thread may call them.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace wan::server {

// The server listens. `status` is one line for `systemctl status`.
void TellReady(std::string_view status);

// The server has begun to stop.
void TellStopping();

// Returns how often TellAlive must be called, which is twice in the time after which the service
// manager takes the process for dead; nothing if it does not watch this process.
std::optional<std::chrono::microseconds> WatchdogInterval();

// The server is alive.
void TellAlive();

}  // namespace wan::server
