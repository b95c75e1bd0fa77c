// What others rely on of the program itself: its one line on stdout, signals and exit codes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/e2e/process.h"
#include "tests/support/http_get.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/tcp_client.h"
#include "wan/v1/telemetry.grpc.pb.h"
#include "wan/v1/video_generation.grpc.pb.h"

namespace wan::server {
namespace {

using e2e::Process;
using e2e::ProcessResult;
using e2e::RunProcess;
using e2e::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class MainTest : public ::testing::Test {
 protected:
  std::vector<std::string> Command(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = {
        WAN_FAKE_SERVER, "--listen", "127.0.0.1:0", "--metrics-listen",  "127.0.0.1:0",
        "--http-listen", "none",     "--data-dir",  folder_.File("data")};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }

  // The gRPC address of the line that a server prints.
  static std::string AddressOf(const std::string& line, const std::string& name = "grpc") {
    const std::string before = "\"" + name + "\":\"";
    const size_t begin = line.find(before) + before.size();
    return line.substr(begin, line.find('"', begin) - begin);
  }

  std::string Log() const { return e2e::ReadWholeFile(folder_.File("log")); }

  const TemporaryFolder folder_;
};

// Sets a variable for the processes that are started while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* const name_;
};

// The value of a variable in the environment that a process was executed with; "unset" without one.
std::string VariableOf(const Process& process, const std::string& name) {
  const std::string path = "/proc/" + std::to_string(process.pid()) + "/environ";
  std::ifstream environment(path);
  for (std::string entry; std::getline(environment, entry, '\0');) {
    if (entry.rfind(name + "=", 0) == 0) return entry.substr(name.size() + 1);
  }
  return "unset";
}

TEST_F(MainTest, IdleThreadsSleepUnlessTheOperatorSaysOtherwise) {
  const auto start = [this] {
    auto server =
        std::make_unique<Process>(Command({"--model", "m=synthetic:ti2v-5b"}), folder_.File("log"));
    EXPECT_THAT(server->ReadLine(), HasSubstr("listening"));
    return server;
  };
  {
    const auto server = start();
    EXPECT_EQ(VariableOf(*server, "GOMP_SPINCOUNT"), "300");
    // It is still the program by its name, for ps and pkill.
    EXPECT_EQ(e2e::ReadWholeFile("/proc/" + std::to_string(server->pid()) + "/comm"),
              std::string("wanserve_with_fake_engine").substr(0, 15) + "\n");
  }
  {
    const Variable active("OMP_WAIT_POLICY", "ACTIVE");
    const auto server = start();
    EXPECT_EQ(VariableOf(*server, "OMP_WAIT_POLICY"), "ACTIVE");
    EXPECT_EQ(VariableOf(*server, "GOMP_SPINCOUNT"), "unset");
  }
  const Variable spins("GOMP_SPINCOUNT", "1000");
  const auto server = start();
  EXPECT_EQ(VariableOf(*server, "OMP_WAIT_POLICY"), "unset");
  EXPECT_EQ(VariableOf(*server, "GOMP_SPINCOUNT"), "1000");
}

// The socket of a service manager.
class Notifications {
 public:
  explicit Notifications(const std::string& path) : fd_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  ~Notifications() { close(fd_); }

  // Waits for the next message.
  std::string Next() {
    char text[512];
    const ssize_t size = recv(fd_, text, sizeof(text), 0);
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }

 private:
  const int fd_;
};

TEST_F(MainTest, TellsTheServiceManagerThatItIsReadyAndStops) {
  Notifications notifications(folder_.File("n"));
  const Variable socket("NOTIFY_SOCKET", folder_.File("n").c_str());
  Process server(Command({"--model", "m=synthetic:ti2v-5b"}), folder_.File("log"));
  const std::string address = AddressOf(server.ReadLine());
  EXPECT_EQ(notifications.Next(), "READY=1\nSTATUS=gRPC on " + address);
  server.Signal(SIGTERM);
  EXPECT_EQ(notifications.Next(), "STOPPING=1");
  EXPECT_EQ(server.Wait(), 0) << Log();
}

TEST_F(MainTest, TellsTheWatchdogThatItIsAlive) {
  Notifications notifications(folder_.File("n"));
  const Variable socket("NOTIFY_SOCKET", folder_.File("n").c_str());
  const Variable watchdog("WATCHDOG_USEC", "30000");
  Process server(Command({"--model", "m=synthetic:ti2v-5b"}), folder_.File("log"));
  EXPECT_THAT(notifications.Next(), StartsWith("READY=1"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(notifications.Next(), "WATCHDOG=1");
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << Log();
}

TEST_F(MainTest, OneLineOnStdoutAndExitZeroAtEitherSignal) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Process server(Command({"--model", "m=synthetic:ti2v-5b"}), folder_.File("log"));
    const std::string line = server.ReadLine();
    EXPECT_THAT(line, MatchesRegex("\\{\"event\":\"listening\",\"grpc\":\"127.0.0.1:[1-9][0-9]*\","
                                   "\"metrics\":\"127.0.0.1:[1-9][0-9]*\"\\}"));
    server.Signal(signal);
    EXPECT_EQ(server.ReadAll(), "");
    EXPECT_EQ(server.Wait(), 0) << Log();
  }
  // Every line of the log is an object.
  std::ifstream log(folder_.File("log"));
  int lines = 0;
  for (std::string line; std::getline(log, line); ++lines) {
    EXPECT_THAT(line, MatchesRegex("\\{\"time\":\".*\\}"));
  }
  EXPECT_GT(lines, 4);
}

TEST_F(MainTest, ASecondSignalEndsItAtOnce) {
  // The model's loading never ends, and a stop waits for it.
  const Variable hold("WAN_FAKE_HOLD", "Model_Initialization");
  const Variable deaf("WAN_FAKE_DEAF", "1");
  Process server(Command({"--model", "m=synthetic:ti2v-5b"}), folder_.File("log"));
  ASSERT_THAT(server.ReadLine(), HasSubstr("listening"));
  server.Signal(SIGTERM);
  while (Log().find("\"stopping\"") == std::string::npos) {
  }
  server.Signal(SIGINT);
  EXPECT_EQ(server.Wait(), 128 + SIGINT);
}

TEST_F(MainTest, ALostDeviceEndsItWithACodeOfItsOwn) {
  ASSERT_EQ(setenv("WAN_FAKE_LOSE_DEVICE", "Model_Initialization", 1), 0);
  Process server(Command({"--model", "m=synthetic:ti2v-5b", "--device-lost-grace-seconds", "0"}),
                 folder_.File("log"));
  ASSERT_EQ(unsetenv("WAN_FAKE_LOSE_DEVICE"), 0);
  EXPECT_EQ(server.Wait(), 75) << Log();
  EXPECT_THAT(Log(), HasSubstr("\"device lost\""));
}

TEST_F(MainTest, TheLossOfTheLastGroupEndsIt) {
  ASSERT_EQ(setenv("WAN_FAKE_LOSE_DEVICE", "Model_Initialization", 1), 0);
  Process server(Command({"--model", "m=synthetic:ti2v-5b", "--device-lost-grace-seconds", "0",
                          "--device", "cpu", "--device", "cpu"}),
                 folder_.File("log"));
  ASSERT_EQ(unsetenv("WAN_FAKE_LOSE_DEVICE"), 0);
  EXPECT_EQ(server.Wait(), 75) << Log();
  EXPECT_THAT(Log(), HasSubstr("\"device group lost\""));
  EXPECT_THAT(Log(), HasSubstr("\"device lost\""));
}

TEST_F(MainTest, ALostDeviceLeavesTimeToRead) {
  ASSERT_EQ(setenv("WAN_FAKE_LOSE_DEVICE", "Model_Initialization", 1), 0);
  Process server(Command({"--model", "m=synthetic:ti2v-5b", "--device-lost-grace-seconds", "3600"}),
                 folder_.File("log"));
  ASSERT_EQ(unsetenv("WAN_FAKE_LOSE_DEVICE"), 0);
  ASSERT_THAT(server.ReadLine(), HasSubstr("listening"));
  while (Log().find("\"ending without a device\"") == std::string::npos) {
  }
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 75) << "also when it is told to stop meanwhile";
}

// A log driver that has got stuck.
TEST_F(MainTest, ALogThatNobodyReadsStopsNobody) {
  const std::string log = folder_.File("log");
  ASSERT_EQ(mkfifo(log.c_str(), 0600), 0);
  const int reader = open(log.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  Process server(Command(), log);
  const std::string listening = server.ReadLine();
  // From now on it has no room.
  const std::string filling(1, '\n');
  while (write(reader, filling.data(), filling.size()) > 0) {
  }
  const auto video = wan::v1::VideoGeneration::NewStub(
      grpc::CreateChannel(AddressOf(listening), grpc::InsecureChannelCredentials()));
  wan::v1::CancelJobRequest cancel;
  cancel.set_name("jobs/none");
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    wan::v1::Job job;
    // Each is an entry of the audit log.
    ASSERT_EQ(video->CancelJob(&context, cancel, &job).error_code(), grpc::StatusCode::NOT_FOUND)
        << i;
  }
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  close(reader);
}

TEST_F(MainTest, SigpipeIsIgnored) {
  Process server(Command(), folder_.File("log"));
  ASSERT_THAT(server.ReadLine(), HasSubstr("listening"));
  server.Signal(SIGPIPE);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

TEST_F(MainTest, WrongUseIsTwo) {
  const struct {
    std::vector<std::string> flags;
    std::string error;
  } cases[] = {
      {{"--no-such-flag"}, "--no-such-flag"},
      {{"--queue-capacity", "0"}, "--queue-capacity is '0'; must be a whole number from 1"},
      {{"--config", "/nonexistent"}, "/nonexistent: does not exist"},
  };
  for (const auto& c : cases) {
    const ProcessResult result = RunProcess(Command(c.flags));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, StartsWith("wanserve: "));
    EXPECT_THAT(result.err, HasSubstr(c.error));
    EXPECT_THAT(result.out, IsEmpty());
  }
}

TEST_F(MainTest, WhatCannotStartIsOneAndSaysWhy) {
  Process first(Command(), folder_.File("log"));
  const std::string address = AddressOf(first.ReadLine());
  const struct {
    std::vector<std::string> flags;
    std::string error;
  } cases[] = {
      {Command(), folder_.File("data")},
      {{WAN_FAKE_SERVER, "--listen", address, "--metrics-listen", "127.0.0.1:0", "--http-listen",
        "none", "--data-dir", folder_.File("other")},
       "listen: cannot listen on " + address},
      {Command({"--device", "cuda:0"}), "device 'cuda:0': there is none"},
      {{WAN_FAKE_SERVER, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
        "--http-listen", "none", "--data-dir", folder_.File("loras"), "--model",
        "m=synthetic:ti2v-5b", "--lora-dir", "/nowhere"},
       "lora_dirs is /nowhere, which cannot be read: No such file or directory"},
  };
  for (const auto& c : cases) {
    const ProcessResult result = RunProcess(c.flags);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("\"message\":\"could not start\""));
    EXPECT_THAT(result.err, HasSubstr(c.error));
    EXPECT_THAT(result.out, IsEmpty());
  }
}

TEST_F(MainTest, WhatIsPrintedCanBeReadAgain) {
  const ProcessResult first =
      RunProcess(Command({"--print-config", "--model", "m=/x", "--queue-capacity", "7"}));
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_THAT(first.out, HasSubstr("queue_capacity: 7\n"));
  std::ofstream(folder_.File("wan.yaml")) << first.out;
  const ProcessResult again =
      RunProcess({WAN_FAKE_SERVER, "--config", folder_.File("wan.yaml"), "--print-config"});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(again.out, first.out);
}

TEST_F(MainTest, HelpAndVersionGoToStdout) {
  for (const char* const flag : {"--help", "--version"}) {
    const ProcessResult result = RunProcess({WAN_FAKE_SERVER, flag});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.out, HasSubstr("wanserve"));
    EXPECT_THAT(result.err, IsEmpty());
  }
}

// A server that may have `descriptors`, with one model that is ready.
class DescriptorsTest : public MainTest {
 protected:
  void Start(const std::string& ulimit) {
    std::vector<std::string> command = {"sh", "-c", "ulimit " + ulimit + "; exec \"$@\"", "sh"};
    for (std::string& word : Command({"--model", "m=synthetic:ti2v-5b"})) {
      command.push_back(std::move(word));
    }
    server_ = std::make_unique<Process>(command, folder_.File("log"));
    const std::string line = server_->ReadLine();
    grpc_ = AddressOf(line);
    metrics_ = AddressOf(line, "metrics");
    ASSERT_THAT(grpc_, StartsWith("127.0.0.1:")) << Log();
  }

  int Port() const { return std::atoi(grpc_.substr(grpc_.rfind(':') + 1).c_str()); }

  std::shared_ptr<grpc::Channel> Connect() const {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(grpc_, grpc::InsecureChannelCredentials(), own);
  }

  // Whether a call over a new connection is answered.
  bool IsAnswered() const {
    const auto stub = wan::v1::Telemetry::NewStub(Connect());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    wan::v1::ServerInfo info;
    return stub->GetServerInfo(&context, {}, &info).ok();
  }

  support::PrometheusText Scrape() const {
    const auto answer = support::HttpGet(
        "127.0.0.1", std::atoi(metrics_.substr(metrics_.rfind(':') + 1).c_str()), "/metrics");
    EXPECT_TRUE(answer.ok()) << answer.status();
    auto parsed = support::PrometheusText::Parse(answer.ok() ? answer->body : "");
    return parsed.ok() ? *std::move(parsed) : support::PrometheusText();
  }

  // Connects and waits until the server has let them in or closed them.
  void OpenIdle(int count, const std::string& source) {
    for (int i = 0; i < count; ++i) idle_.emplace_back(Port(), source);
  }

  std::unique_ptr<Process> server_;
  std::string grpc_, metrics_;
  std::list<support::TcpClient> idle_;
};

TEST_F(DescriptorsTest, TheSoftLimitIsRaisedToTheHardOne) {
  Start("-Sn 200");
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(Scrape().Value("wan_process_descriptors_limit"), static_cast<double>(limit.rlim_max));
}

TEST_F(DescriptorsTest, AcceptingGoesOnAfterMoreConnectionsThanDescriptors) {
  Start("-n 256");
  EXPECT_EQ(Scrape().Value("wan_grpc_connections_limit"), 64);
  OpenIdle(400, "127.0.0.1");
  // An address has half of all.
  while (Scrape().Value("wan_grpc_refused_connections_total", {{"reason", "address"}}) < 368) {
  }
  EXPECT_EQ(Scrape().Value("wan_grpc_connections"), 32);
  EXPECT_FALSE(IsAnswered()) << "this address has all that it may have";
  idle_.clear();
  const auto closed = std::chrono::steady_clock::now();
  while (!IsAnswered()) {
  }
  EXPECT_LT(std::chrono::steady_clock::now() - closed, std::chrono::seconds(2));
  EXPECT_EQ(Scrape().Value("wan_grpc_refused_connections_total", {{"reason", "descriptors"}}), 0);
}

TEST_F(DescriptorsTest, HealthTellsWhileNobodyIsLetIn) {
  Start("-n 256");
  const auto health = grpc::health::v1::Health::NewStub(Connect());
  grpc::ClientContext context;
  const auto watch = health->Watch(&context, {});
  grpc::health::v1::HealthCheckResponse response;
  using Response = grpc::health::v1::HealthCheckResponse;
  const auto await = [&](Response::ServingStatus wanted) {
    while (watch->Read(&response)) {
      if (response.status() == wanted) return true;
    }
    return false;
  };
  ASSERT_TRUE(await(Response::SERVING));
  for (const char* const source : {"127.0.0.1", "127.0.0.2", "127.0.0.3"}) OpenIdle(100, source);
  EXPECT_TRUE(await(Response::NOT_SERVING));
  idle_.clear();
  EXPECT_TRUE(await(Response::SERVING));
  context.TryCancel();
}

// What the process holds during and after wan_attack, which tests/e2e/attack describes.
class MemoryTest : public DescriptorsTest {
 protected:
  // A figure of /proc/PID/status in MiB: VmRSS is now, VmHWM the most so far.
  int64_t Mib(const std::string& figure) const {
    std::ifstream status("/proc/" + std::to_string(server_->pid()) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind(figure + ":", 0) == 0) {
        return std::atoll(line.c_str() + figure.size() + 1) >> 10;
      }
    }
    return 0;
  }
};

TEST_F(MemoryTest, ManyLargeRequestsAtOnceStayWithinTheBudgetAndAreGivenBack) {
  Start("-n 1024");
  // 1.8 GB of requests; their bytes, parsed once more, are within 1.5 GiB.
  const ProcessResult attack = RunProcess(
      {"sh", "-c", std::string(WAN_ATTACK) + " requests " + grpc_ + " 30 60 </dev/null"});
  EXPECT_EQ(attack.exit_code, 0) << attack.err;
  EXPECT_LT(Mib("VmHWM"), 1536);
  // A second after the burst.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (Mib("VmRSS") > 200 && std::chrono::steady_clock::now() < end) {
  }
  EXPECT_LE(Mib("VmRSS"), 200);
  EXPECT_TRUE(IsAnswered());
}

}  // namespace
}  // namespace wan::server
