// The program wanserve: reads the settings, starts the server, and stops it on a signal.
//
// On SIGHUP the server reads its settings and files again (Server::Reload).
//
// Exit codes: 0 means stopped by a signal, 1 could not start, 2 wrong flags or configuration, 75
// the device was lost and the process must be restarted. A second signal ends the process at once,
// with 128 + the signal's number as its exit code.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "engine/api/clock.h"
#include "engine/api/engine_factory.h"
#include "server/config/default_models.h"
#include "server/config/yaml_config.h"
#include "server/logging/logger.h"
#include "server/process/command_line.h"
#include "server/process/descriptors.h"
#include "server/process/first_start.h"
#include "server/process/heaps.h"
#include "server/process/idle_threads.h"
#include "server/process/repair_command.h"
#include "server/process/service_manager.h"
#include "server/process/token_command.h"
#include "server/server.h"

namespace wan::server {
namespace {

constexpr int kStopped = 0;
constexpr int kCouldNotStart = 1;
constexpr int kUsage = 2;
constexpr int kDeviceLost = 75;  // the value of EX_TEMPFAIL

// Maximum time for stopping a server whose device is lost, because the driver may hang.
constexpr std::chrono::seconds kLongestLostStop{20};
// Maximum time that writing the last log lines may take when the process ends.
constexpr absl::Duration kLastLines = absl::Seconds(1);

struct Signals {
  sigset_t stop;
  sigset_t all;  // the signals in `stop`, and SIGHUP
};

// Blocks the signals that the main thread waits for, in this thread and in all threads that it
// starts. A SIGHUP that arrives while the server starts or stops stays pending.
Signals BlockSignals() {
  Signals signals;
  sigemptyset(&signals.stop);
  sigaddset(&signals.stop, SIGTERM);
  sigaddset(&signals.stop, SIGINT);
  signals.all = signals.stop;
  sigaddset(&signals.all, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals.all, nullptr);
  return signals;
}

int AwaitSignal(const sigset_t& signals) {
  int signal = 0;
  sigwait(&signals, &signal);
  return signal;
}

// Like AwaitSignal; if the service manager has a watchdog, also calls TellAlive while the server is
// alive.
int AwaitSignalAlive(const sigset_t& signals, Server& server) {
  const std::optional<std::chrono::microseconds> interval = WatchdogInterval();
  if (!interval.has_value()) return AwaitSignal(signals);
  timespec wait{};
  wait.tv_sec = static_cast<time_t>(interval->count() / 1'000'000);
  wait.tv_nsec = static_cast<long>(interval->count() % 1'000'000 * 1'000);
  for (;;) {
    if (server.CheckAlive().ok()) TellAlive();
    const int signal = sigtimedwait(&signals, nullptr, &wait);
    if (signal > 0) return signal;
  }
}

// Reads the current settings from the file and the flags.
using ReadSettings = std::function<absl::StatusOr<ServerConfig>()>;

// Waits for a signal that stops the server, and returns it.
int AwaitStop(const Signals& signals, Server& server, const ReadSettings& read) {
  for (;;) {
    const int signal = AwaitSignalAlive(signals.all, server);
    if (signal != SIGHUP) return signal;
    server.Reload(read());
  }
}

// Ends a process whose device is lost: after `grace` seconds, or at a stop signal. Does not destroy
// objects on the device, because the driver would refuse every call.
[[noreturn]] void EndWithoutDevice(const sigset_t& stop_signals, double grace, Server& server,
                                   Logger& logger) {
  logger.Log(LogLevel::kError, "ending without a device", {{"after_seconds", grace}});
  timespec left{};
  left.tv_sec = static_cast<time_t>(grace);
  left.tv_nsec = static_cast<long>((grace - std::floor(grace)) * 1e9);
  sigtimedwait(&stop_signals, nullptr, &left);
  // If Stop() does not return in time, end the process, because Stop() may wait for the lost device
  // forever.
  std::thread([] {
    std::this_thread::sleep_for(kLongestLostStop);
    _exit(kDeviceLost);
  }).detach();
  server.Stop();
  logger.Log(LogLevel::kInfo, "stopped");
  logger.Flush(kLastLines);
  _exit(kDeviceLost);
}

void PrintListening(const Server& server) {
  // The host needs no escaping, because ParseHostPort refuses characters that would need escaping.
  const auto part = [](const std::string& name, const std::optional<HostPort>& address) {
    return address.has_value() ? ",\"" + name + "\":\"" + ToString(*address) + "\"" : std::string();
  };
  std::printf("{\"event\":\"listening\"%s%s%s%s}\n", part("grpc", server.grpc_address()).c_str(),
              part("metrics", server.metrics_address()).c_str(),
              part("admin", server.admin_address()).c_str(),
              part("http", server.http_address()).c_str());
  std::fflush(stdout);
}

int CouldNotStart(Logger& logger, const absl::Status& status) {
  logger.Log(LogLevel::kError, "could not start",
             {{"code", absl::StatusCodeToString(status.code())},
              {"error", std::string(status.message())}});
  return kCouldNotStart;
}

int Serve(const ServerConfig& config, const ReadSettings& read, const Signals& signals,
          Logger& logger) {
  RaiseDescriptorLimit();
  std::vector<std::unique_ptr<Engine>> owned;
  std::vector<Engine*> engines;  // the index is the number of the device group
  for (const DeviceGroup& group : GroupsOf(config)) {
    auto engine = MakeWanEngine(group.devices, config.engine);
    if (!engine.ok()) return CouldNotStart(logger, engine.status());
    engines.push_back(engine->get());
    owned.push_back(*std::move(engine));
  }
  // The main thread waits for signals, so a signal tells it that the device is lost.
  static std::atomic<bool> device_lost = false;
  auto server = Server::Start(config, engines, SystemClock(), logger, {}, [] {
    device_lost = true;
    kill(getpid(), SIGTERM);
  });
  if (!server.ok()) return CouldNotStart(logger, server.status());
  logger.Log(LogLevel::kInfo, "listening",
             {{"grpc", ToString((*server)->grpc_address())},
              {"metrics", ToString((*server)->metrics_address())},
              {"data_dir", config.data_dir},
              {"device", absl::StrJoin(config.devices, " ")},
              {"dtype", config.engine.dtype}});
  PrintListening(**server);
  if (isatty(STDERR_FILENO) != 0) {
    // Do not use std::cerr, whose text becomes entries of the log (RouteLibraryLogs).
    logger.Flush(kLastLines);
    std::fputs(NextSteps({(*server)->grpc_address(), (*server)->http_address(), config.http_page,
                          !config.tls_cert.empty()},
                         program_invocation_name)
                   .c_str(),
               stderr);
  }
  TellReady("gRPC on " + ToString((*server)->grpc_address()));

  const int signal = AwaitStop(signals, **server, read);
  TellStopping();
  if (device_lost) {
    EndWithoutDevice(signals.stop, config.device_lost_grace_seconds, **server, logger);
  }
  logger.Log(LogLevel::kInfo, "stopping", {{"signal", signal}});
  // Start a thread that ends the process at once at a second signal. Ending the process is safe,
  // because accepted jobs are on disk, and running jobs are resumed after a restart.
  std::thread([stop = signals.stop] { _exit(128 + AwaitSignal(stop)); }).detach();
  (*server)->Stop();
  logger.Log(LogLevel::kInfo, "stopped");
  return kStopped;
}

// Makes the log, serves callers, and writes the last log lines before it returns.
int ServeWithLog(const ServerConfig& config, const ReadSettings& read) {
  // Ignore SIGPIPE, so that writing to a closed connection returns an error instead of ending the
  // process.
  std::signal(SIGPIPE, SIG_IGN);
  // Ignore SIGXFSZ, so that writing beyond the process's limit of file sizes returns an error
  // instead of ending the process.
  std::signal(SIGXFSZ, SIG_IGN);
  // Block signals before the log starts the first thread.
  const Signals signals = BlockSignals();
  // The logger is never freed, because libraries may log while the process ends.
  static Logger& logger =
      *new Logger(config.log_level, config.log_format, SystemClock(), StandardError(SystemClock()));
  RouteLibraryLogs(logger, SystemClock());
  WriteLinesAtCrash(logger);
  const int code = Serve(config, read, signals, logger);
  logger.Flush(kLastLines);
  return code;
}

// Reads the flags and the config file, and adds the demo model if the settings name no model.
absl::StatusOr<CommandLine> ReadCommandLine(int argc, char** argv) {
  absl::StatusOr<CommandLine> command = ParseCommandLine(argc, argv);
  if (!command.ok() || !command->config.models.empty()) return command;
  std::error_code error;
  command->config.models = DefaultModels(std::filesystem::read_symlink("/proc/self/exe", error));
  return command;
}

int Main(int argc, char** argv) {
  if (IsTokenCommand(argc, argv)) {
    return RunTokenCommand(argc, argv, SystemClock(), std::cout, std::cerr);
  }
  if (IsRepairCommand(argc, argv)) {
    return RunRepairCommand(argc, argv, SystemClock(), std::cout, std::cerr);
  }
  const absl::StatusOr<CommandLine> command = ReadCommandLine(argc, argv);
  if (!command.ok()) {
    std::cerr << "wanserve: " << std::string(command.status().message()) << '\n';
    return kUsage;
  }
  switch (command->action) {
    case CommandLine::Action::kPrintText:
      std::cout << command->text;
      return kStopped;
    case CommandLine::Action::kPrintConfig:
      std::cout << ToYaml(command->config);
      return kStopped;
    case CommandLine::Action::kServe:
      break;
  }
  return ServeWithLog(command->config, [argc, argv]() -> absl::StatusOr<ServerConfig> {
    absl::StatusOr<CommandLine> again = ReadCommandLine(argc, argv);
    if (!again.ok()) return again.status();
    return std::move(again->config);
  });
}

}  // namespace
}  // namespace wan::server

int main(int argc, char** argv) {
  wan::server::MakeIdleThreadsSleep(argv);
  wan::server::KeepHeapsSmall();
  return wan::server::Main(argc, argv);
}
