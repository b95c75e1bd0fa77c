// The program itself: signals, streams and the environment.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/client/fakes/events.h"
#include "tests/client/fakes/scripted_server.h"
#include "tests/client/fakes/temp_folder.h"

namespace wan::client {
namespace {

using fakes::Queued;
using fakes::ReadFile;
using fakes::Stream;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using wan::v1::Event;

class WanctlProcessTest : public testing::Test {
 protected:
  // The environment of every wanctl of the tests.
  std::vector<std::string> Variables() {
    std::vector<std::string> variables = {"WAN_SERVER=" + server_.address(), "TERM=xterm"};
    // What a sanitizer, where there is one, has been told to leave out.
    if (const char* const options = std::getenv("TSAN_OPTIONS"); options != nullptr) {
      variables.push_back(std::string("TSAN_OPTIONS=") + options);
    }
    return variables;
  }

  // Starts wanctl with its streams in files, and WAN_SERVER set to this test's server.
  pid_t Start(std::vector<std::string> args) {
    args.insert(args.begin(), WAN_BINARY_DIR "/wanctl");
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    // All that a child of a process with threads may not do after fork.
    const std::string out = (folder_ / "out").string(), err = (folder_ / "err").string();
    std::vector<std::string> variables = Variables();
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(open(out.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), STDOUT_FILENO);
      dup2(open(err.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), STDERR_FILENO);
      execve(argv[0], argv.data(), environment.data());
      _exit(127);
    }
    return pid;
  }

  // Runs wanctl on a terminal of its own, types `keys` once it has drawn something, and returns
  // what it has drawn. Its exit code must be 0.
  std::string OnTerminal(std::vector<std::string> args, const std::vector<std::string>& variables,
                         const std::string& keys = "") {
    args.insert(args.begin(), WAN_BINARY_DIR "/wanctl");
    std::vector<std::string> all = Variables();
    all.insert(all.end(), variables.begin(), variables.end());
    std::vector<char*> argv, environment;
    for (std::string& arg : args) argv.push_back(arg.data());
    for (std::string& variable : all) environment.push_back(variable.data());
    argv.push_back(nullptr);
    environment.push_back(nullptr);
    const winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    int terminal = -1;
    const pid_t pid = forkpty(&terminal, nullptr, nullptr, &size);
    if (pid == 0) {
      execve(argv[0], argv.data(), environment.data());
      _exit(127);
    }
    std::string drawn;
    char buffer[4096];
    bool typed = keys.empty();
    // The read fails once wanctl has closed the terminal's other end.
    while (true) {
      const ssize_t got = read(terminal, buffer, sizeof(buffer));
      if (got <= 0) break;
      drawn.append(buffer, static_cast<size_t>(got));
      if (!typed && drawn.find("1.2.3") != std::string::npos) {
        EXPECT_EQ(write(terminal, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
        typed = true;
      }
    }
    close(terminal);
    EXPECT_EQ(Wait(pid), 0) << drawn;
    return drawn;
  }

  // Exit code, or minus the signal that ended it.
  static int Wait(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::string Out() const { return ReadFile(folder_ / "out"); }
  std::string Err() const { return ReadFile(folder_ / "err"); }

  const fakes::TempFolder folder_;
  fakes::ScriptedServer server_;
};

TEST_F(WanctlProcessTest, TakesTheServerFromTheEnvironment) {
  server_.scripts.get_server_info = [](const auto&, wan::v1::ServerInfo* info) {
    info->set_version("1.2.3");
    return grpc::Status::OK;
  };
  EXPECT_EQ(Wait(Start({"info", "--json"})), 0);
  EXPECT_EQ(Out(), "{\"version\":\"1.2.3\"}\n");
  EXPECT_EQ(Err(), "");
}

TEST_F(WanctlProcessTest, ColoursAreForTerminalsWhoseUsersWantThem) {
  server_.scripts.list_models = [](const auto&, wan::v1::ListModelsResponse* response) {
    response->add_models()->set_name("models/5b");
    return grpc::Status::OK;
  };
  EXPECT_THAT(OnTerminal({"models"}, {}), HasSubstr("\x1b[1mModel\x1b[0m"));
  EXPECT_THAT(OnTerminal({"models"}, {"NO_COLOR="}), HasSubstr("\x1b[1m")) << "empty says nothing";
  EXPECT_THAT(OnTerminal({"models"}, {"NO_COLOR=1"}), Not(HasSubstr("\x1b")));
  EXPECT_EQ(Wait(Start({"models"})), 0);
  EXPECT_THAT(Out(), Not(HasSubstr("\x1b"))) << "a file";
}

TEST_F(WanctlProcessTest, TopHasTheTerminalUntilQ) {
  server_.scripts.get_server_info = [](const auto&, wan::v1::ServerInfo* info) {
    info->set_version("1.2.3");
    return grpc::Status::OK;
  };
  server_.scripts.list_jobs = [](const auto&, auto*) { return grpc::Status::OK; };
  server_.scripts.watch_devices = [](const auto&) {
    return Stream<wan::v1::WatchDevicesResponse>{};
  };
  const std::string drawn = OnTerminal({"top", "--interval", "3600"}, {}, "q");
  EXPECT_THAT(drawn, HasSubstr("\x1b[?1049h")) << "a screen of its own";
  EXPECT_THAT(drawn, ::testing::EndsWith("\x1b[?1049l")) << "and back";
}

TEST_F(WanctlProcessTest, SignalsCancelGenerate) {
  for (const int signal : {SIGINT, SIGTERM}) {
    absl::Notification holds, cancelled;
    server_.scripts.generate = [&](const auto&) {
      return Stream<Event>{.messages = {Queued(1)},
                           .hold = true,
                           .on_hold = [&] { holds.Notify(); },
                           .on_cancel = [&] { cancelled.Notify(); }};
    };
    const pid_t pid = Start({"generate", "--model", "5b", "--prompt", "a cat", "--output",
                             (folder_ / "a.mp4").string()});
    holds.WaitForNotification();
    kill(pid, signal);
    EXPECT_EQ(Wait(pid), 5);
    cancelled.WaitForNotification();
    EXPECT_THAT(Err(), HasSubstr("wanctl: interrupted\n"));
    // A file is no terminal: no bar.
    EXPECT_THAT(Err(), Not(HasSubstr("\x1b")));
  }
}

TEST_F(WanctlProcessTest, UsageAndNobodyThere) {
  EXPECT_EQ(Wait(Start({"frobnicate"})), 2);
  EXPECT_EQ(Wait(Start({"--server", "127.0.0.1:1", "info"})), 6);
  EXPECT_THAT(Err(), MatchesRegex("wanctl: nothing listens on 127.0.0.1:1; [^\n]*\n"));
  // gRPC logs this one; its log is not shown.
  EXPECT_EQ(Wait(Start({"--server", "[zz]:5", "info"})), 6);
  EXPECT_THAT(Err(), MatchesRegex("wanctl: cannot reach .zz.:5: [^\n]*\n"));
}

}  // namespace
}  // namespace wan::client
