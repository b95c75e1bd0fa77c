// Who may call, as the program itself has it: flags, the token command, its line on stdout.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "tests/e2e/process.h"
#include "tests/support/certificates.h"
#include "wan/v1/telemetry.grpc.pb.h"

namespace wan::server {
namespace {

using e2e::Process;
using e2e::ProcessResult;
using e2e::RunProcess;
using e2e::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

// Listens on a port of 127.0.0.1 that may be taken already.
class TakenPort {
 public:
  explicit TakenPort(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    (void)listen(fd_, 1);
  }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  ~TakenPort() { close(fd_); }

 private:
  const int fd_;
};

class SecurityMainTest : public ::testing::Test {
 protected:
  std::vector<std::string> Command(const std::string& listen,
                                   const std::vector<std::string>& more) const {
    std::vector<std::string> command = {WAN_FAKE_SERVER,      "--listen",    listen,
                                        "--metrics-listen",   "127.0.0.1:0", "--data-dir",
                                        folder_.File("data"), "--model",     "m=synthetic:ti2v-5b"};
    command.insert(command.end(), more.begin(), more.end());
    if (std::find(more.begin(), more.end(), "--http-listen") == more.end()) {
      command.insert(command.end(), {"--http-listen", "none"});
    }
    return command;
  }

  std::string Put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.File(name), std::ios::binary) << text;
    return folder_.File(name);
  }

  TemporaryFolder folder_;
};

TEST_F(SecurityMainTest, OtherMachinesNeedToBeKnown) {
  const ProcessResult refused = RunProcess(Command("0.0.0.0:0", {}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--auth-tokens FILE"));
  EXPECT_THAT(refused.err, HasSubstr("--insecure"));
  EXPECT_THAT(refused.out, IsEmpty());
}

TEST_F(SecurityMainTest, TheDefaultAddressOfTheOpenAiApiMayBeTaken) {
  // If another program has the port already, it is taken as well.
  const TakenPort taken(8000);
  std::vector<std::string> command = Command("127.0.0.1:0", {"--http-listen", "127.0.0.1:8000"});
  const ProcessResult refused = RunProcess(command);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("http_listen: cannot listen on 127.0.0.1:8000"));
  command.resize(command.size() - 2);  // nobody chose it now
  Process server(command, folder_.File("log"));
  EXPECT_THAT(server.ReadLine(), Not(HasSubstr("http")));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_THAT(e2e::ReadWholeFile(folder_.File("log")), HasSubstr("their default address is taken"));
}

TEST_F(SecurityMainTest, TheOpenAiApiCanBeSwitchedOff) {
  Process without(Command("127.0.0.1:0", {}), folder_.File("log"));
  EXPECT_THAT(without.ReadLine(), Not(HasSubstr("http")));
  without.Signal(SIGTERM);
  EXPECT_EQ(without.Wait(), 0);
  Process with(Command("127.0.0.1:0", {"--http-listen", "127.0.0.1:0"}), folder_.File("log"));
  EXPECT_THAT(with.ReadLine(),
              MatchesRegex("\\{\"event\":\"listening\",\"grpc\":\"127.0.0.1:[0-9]+\",\"metrics\":"
                           "\"127.0.0.1:[0-9]+\",\"http\":\"127.0.0.1:[0-9]+\"\\}"));
  with.Signal(SIGTERM);
  EXPECT_EQ(with.Wait(), 0);
  const ProcessResult refused = RunProcess(Command("127.0.0.1:0", {"--http-listen", "0.0.0.0:0"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("http_listen is 0.0.0.0:0"));
}

TEST_F(SecurityMainTest, InsecureStartsAndSaysSo) {
  Process server(Command("0.0.0.0:0", {"--insecure"}), folder_.File("log"));
  const std::string line = server.ReadLine();
  EXPECT_THAT(line, HasSubstr("\"grpc\":\"0.0.0.0:"));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  std::ifstream log(folder_.File("log"));
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(log), {}), HasSubstr("insecure: "));
}

TEST_F(SecurityMainTest, ATokenThatWasJustMadeLetsIn) {
  const std::string file = folder_.File("tokens");
  const auto create = [&](const std::string& name) {
    const ProcessResult made = RunProcess({WAN_FAKE_SERVER, "token", "create", "--file", file,
                                           "--principal", name, "--role", "user"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_THAT(made.out, MatchesRegex("wan_[0-9a-f]{64}\n"));
    return made.out.substr(0, made.out.find('\n'));
  };
  create("first");
  Process server(Command("127.0.0.1:0", {"--auth-tokens", file, "--admin-listen", "127.0.0.1:0"}),
                 folder_.File("log"));
  const std::string line = server.ReadLine();
  EXPECT_THAT(line,
              MatchesRegex("\\{\"event\":\"listening\",\"grpc\":\"127.0.0.1:[0-9]+\",\"metrics\":"
                           "\"127.0.0.1:[0-9]+\",\"admin\":\"127.0.0.1:[0-9]+\"\\}"));
  const size_t at = line.find("127.0.0.1:");
  const auto stub = wan::v1::Telemetry::NewStub(grpc::CreateChannel(
      line.substr(at, line.find('"', at) - at), grpc::InsecureChannelCredentials()));
  const auto ask = [&](const std::string& token) {
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    wan::v1::ServerInfo info;
    return stub->GetServerInfo(&context, {}, &info).error_code();
  };
  EXPECT_EQ(ask(""), grpc::StatusCode::UNAUTHENTICATED);
  const std::string second = create("second");
  EXPECT_EQ(ask(second), grpc::StatusCode::OK);
  EXPECT_EQ(
      RunProcess({WAN_FAKE_SERVER, "token", "revoke", "--file", file, "--principal", "second"})
          .exit_code,
      0);
  EXPECT_EQ(ask(second), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(SecurityMainTest, FilesThatCannotBeUsedAreNoStart) {
  const support::CertificateAuthority authority;
  support::CertificateOptions old;
  old.end = old.begin + absl::Hours(24);
  const support::Certificate expired = authority.Issue(old);
  const std::string certificate = Put("cert.pem", expired.certificate);
  const std::string key = Put("key.pem", expired.key);
  const struct {
    std::vector<std::string> flags;
    std::string error;
  } cases[] = {
      {{"--tls-cert", certificate, "--tls-key", key}, certificate + " expired at 2020-01-02"},
      {{"--tls-cert", folder_.File("none"), "--tls-key", key},
       "tls_cert: " + folder_.File("none") + " cannot be read: No such file"},
      {{"--tls-cert", key, "--tls-key", key}, "tls_cert: " + key + " has no certificate"},
      {{"--auth-tokens", folder_.File("none")}, "auth_tokens: " + folder_.File("none")},
  };
  for (const auto& c : cases) {
    const ProcessResult result = RunProcess(Command("127.0.0.1:0", c.flags));
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr(c.error));
    EXPECT_THAT(result.out, IsEmpty());
  }
}

}  // namespace
}  // namespace wan::server
