// Sends messages to the service manager that started the process: systemd with Type=notify, through
// sd_notify. Without a service manager the functions do nothing. Any thread may call the functions.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace wan::server {

// Tells the service manager that the server listens. `status` is a line that `systemctl status`
// shows.
void TellReady(std::string_view status);

// Tells the service manager that the server has begun to stop.
void TellStopping();

// Returns the interval at which to call TellAlive, which is half of the watchdog's timeout; nothing
// if there is no watchdog.
std::optional<std::chrono::microseconds> WatchdogInterval();

// Tells the service manager that the server is alive.
void TellAlive();

}  // namespace wan::server
