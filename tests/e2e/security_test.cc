// The real server with tokens and TLS, and wanctl as its users run it.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/e2e/process.h"
#include "tests/e2e/test_server.h"
#include "tests/support/certificates.h"
#include "tests/support/tcp_client.h"

namespace wan::e2e {
namespace {

using support::Certificate;
using support::CertificateAuthority;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace health = grpc::health::v1;

class SecurityTest : public testing::Test {
 protected:
  SecurityTest() {
    Install(first_.Issue());
    Put("first.pem", first_.certificate());
    Put("second.pem", second_.certificate());
    Put("both.pem", first_.certificate() + second_.certificate());
    for (const auto& [principal, role] : std::vector<std::pair<std::string, std::string>>{
             {"alice", "user"}, {"bob", "user"}, {"dashboard", "viewer"}, {"ops", "admin"}}) {
      const ProcessResult made =
          RunProcess({Binary("wanserve"), "token", "create", "--file", folder_.File("tokens"),
                      "--principal", principal, "--role", role});
      EXPECT_EQ(made.exit_code, 0) << made.err;
      Put(principal + ".token", made.out);
    }
    server_ = std::make_unique<Process>(
        std::vector<std::string>{Binary("wanserve"), "--listen", "127.0.0.1:0", "--admin-listen",
                                 "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--http-listen",
                                 "none", "--data-dir", folder_.File("data"), "--model",
                                 ServerOptions::TinyModel(), "--auth-tokens",
                                 folder_.File("tokens"), "--tls-cert", folder_.File("cert.pem"),
                                 "--tls-key", folder_.File("key.pem")},
        folder_.File("log"));
    google::protobuf::Struct line;
    const std::string text = server_->ReadLine();
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(text, &line).ok()) << text << Log();
    const auto& fields = line.fields();
    for (const char* const name : {"grpc", "admin", "metrics"}) {
      if (fields.contains(name)) addresses_[name] = fields.at(name).string_value();
    }
    AwaitServing();
  }

  static std::string Binary(const std::string& name) {
    return std::string(WAN_BINARY_DIR) + "/" + name;
  }

  // As tools renew files: a new one in the place of the old one.
  void Put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.File(name + ".new"), std::ios::binary) << text;
    std::filesystem::rename(folder_.File(name + ".new"), folder_.File(name));
  }
  void Install(const Certificate& certificate) const {
    Put("cert.pem", certificate.certificate);
    Put("key.pem", certificate.key);
  }

  void AwaitServing() {
    const auto stub = health::Health::NewStub(grpc::CreateChannel(
        addresses_["grpc"], grpc::SslCredentials({first_.certificate(), "", ""})));
    grpc::ClientContext context;
    const auto reader = stub->Watch(&context, health::HealthCheckRequest());
    health::HealthCheckResponse response;
    while (reader->Read(&response)) {
      if (response.status() == health::HealthCheckResponse::SERVING) {
        context.TryCancel();
        return;
      }
    }
    ADD_FAILURE() << reader->Finish().error_message() << Log();
  }

  std::string Log() const { return ReadWholeFile(folder_.File("log")); }

  int PortOf(const std::string& name) const {
    const std::string& address = addresses_.at(name);
    return std::stoi(address.substr(address.rfind(':') + 1));
  }

  // wanctl as a principal; nobody if that is empty.
  ProcessResult Wanctl(const std::string& principal, std::vector<std::string> arguments,
                       const std::string& ca = "first.pem",
                       const std::string& address = "grpc") const {
    arguments.insert(arguments.begin(), {Binary("wanctl"), "--server", addresses_.at(address),
                                         "--tls-ca", folder_.File(ca)});
    if (!principal.empty()) {
      arguments.insert(arguments.end(), {"--token-file", folder_.File(principal + ".token")});
    }
    return RunProcess(arguments);
  }

  static std::vector<std::string> Small(const std::string& verb, std::vector<std::string> more = {},
                                        int steps = 2) {
    std::vector<std::string> arguments = {verb,
                                          "--model",
                                          "tiny",
                                          "--prompt",
                                          "A cat.",
                                          "--size",
                                          "64x32",
                                          "--frames",
                                          "5",
                                          "--steps",
                                          std::to_string(steps),
                                          "--seed",
                                          "3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  const CertificateAuthority first_{"the first authority"};
  const CertificateAuthority second_{"the second authority"};
  TemporaryFolder folder_;
  std::unique_ptr<Process> server_;
  std::map<std::string, std::string> addresses_;
};

TEST_F(SecurityTest, EveryRoleMayWhatItMayAndNoMore) {
  const std::string file = folder_.File("video.mp4");
  const ProcessResult generated = Wanctl("alice", Small("generate", {"--output", file}));
  EXPECT_EQ(generated.exit_code, 0) << generated.err << Log();
  EXPECT_EQ(ReadWholeFile(file).substr(4, 4), "ftyp");
  const ProcessResult submitted =
      Wanctl("alice", Small("submit", {"--artifact", "mp4", "--artifact", "safetensors"}));
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  const std::string job = submitted.out.substr(0, submitted.out.find('\n'));
  const std::vector<std::string> vary = Small("submit", {"--latents", job, "--strength", "0.9"});

  const struct {
    const char* principal;
    std::vector<std::string> arguments;
    const char* address;
    int exit_code;
    const char* error;
  } calls[] = {
      {"", {"list"}, "grpc", 3, "UNAUTHENTICATED"},
      {"alice", {"get", job}, "grpc", 0, ""},
      {"alice", {"watch", job}, "grpc", 0, ""},
      // Another's job does not exist, also for whom may do more with its own.
      {"bob", {"get", job}, "grpc", 3, "NOT_FOUND"},
      {"bob", {"cancel", job}, "grpc", 3, "NOT_FOUND"},
      {"dashboard", {"get", job}, "grpc", 3, "NOT_FOUND"},
      // Nor do its latents.
      {"bob", vary, "grpc", 3, "which does not exist"},
      {"alice", vary, "grpc", 0, ""},
      {"ops", vary, "grpc", 0, ""},
      {"dashboard", {"info"}, "grpc", 0, ""},
      {"dashboard", Small("submit"), "grpc", 3, "PERMISSION_DENIED"},
      {"ops", {"get", job}, "grpc", 0, ""},
      // Models and draining are for administrators, and on their address alone.
      {"ops", {"models"}, "grpc", 3, "UNIMPLEMENTED"},
      {"ops", {"models"}, "admin", 0, ""},
      {"alice", {"models"}, "admin", 3, "PERMISSION_DENIED"},
      {"alice", {"drain"}, "admin", 3, "PERMISSION_DENIED"},
      {"ops", {"drain"}, "grpc", 3, "UNIMPLEMENTED"},
      {"alice", {"info"}, "grpc", 0, ""},
      {"ops", {"drain"}, "admin", 0, ""},
      {"alice", Small("submit"), "grpc", 3, "the server is being drained"},
  };
  for (const auto& call : calls) {
    const ProcessResult result = Wanctl(call.principal, call.arguments, "first.pem", call.address);
    EXPECT_EQ(result.exit_code, call.exit_code)
        << call.principal << " " << call.arguments.front() << ": " << result.err;
    EXPECT_THAT(result.err, HasSubstr(call.error)) << call.principal;
  }
  AwaitInFile(folder_.File("log"), R"("reason":"ROLE_REQUIRED")");
  EXPECT_THAT(Log(), AllOf(HasSubstr(R"("principal":"alice","role":"user")"),
                           HasSubstr(R"("reason":"ROLE_REQUIRED")"),
                           Not(HasSubstr(ReadWholeFile(folder_.File("alice.token")).substr(0, 68))),
                           Not(HasSubstr("A cat."))));
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->Wait(), 0);
}

TEST_F(SecurityTest, ARevokedTokenEndsWithTheNextCall) {
  EXPECT_EQ(Wanctl("bob", {"list"}).exit_code, 0);
  EXPECT_EQ(RunProcess({Binary("wanserve"), "token", "revoke", "--file", folder_.File("tokens"),
                        "--principal", "bob"})
                .exit_code,
            0);
  const ProcessResult refused = Wanctl("bob", {"list"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("UNAUTHENTICATED"));
  EXPECT_EQ(Wanctl("alice", {"list"}).exit_code, 0);
}

TEST_F(SecurityTest, TheCertificateIsRenewedUnderLoad) {
  constexpr int kRenewals = 12;
  std::atomic<bool> renewed = false;
  std::atomic<int> calls = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([&] {
      while (!renewed) {
        const ProcessResult listed = Wanctl("alice", {"list"}, "both.pem");
        EXPECT_EQ(listed.exit_code, 0) << listed.err;
        ++calls;
      }
    });
  }
  // One connection that is there all the time.
  const std::string file = folder_.File("video.mkv");
  ProcessResult generated;
  std::thread generating([&] {
    generated = Wanctl("alice", Small("generate", {"--output", file}, /*steps=*/300), "both.pem");
  });
  for (int i = 0; i < kRenewals; ++i) {
    Install(i % 2 == 0 ? second_.Issue() : first_.Issue());
    const int before = calls;
    while (calls < before + 2) std::this_thread::yield();  // new connections with each
  }
  Install(second_.Issue());
  renewed = true;
  for (std::thread& caller : callers) caller.join();
  generating.join();
  EXPECT_EQ(generated.exit_code, 0) << generated.err;
  EXPECT_EQ(Wanctl("alice", {"list"}, "second.pem").exit_code, 0);
  EXPECT_EQ(Wanctl("alice", {"list", "--timeout", "3"}, "first.pem").exit_code, 6)
      << "the certificate of before is not shown any more";
}

TEST_F(SecurityTest, NoPlainConnectionIsAnswered) {
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(9, '\0');
  for (const std::string name : {"grpc", "admin", "metrics"}) {
    for (const std::string& text :
         {preface, std::string("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")}) {
      support::TcpClient client(PortOf(name));
      client.Send(text);
      const std::string answer = client.ReadToEnd();
      // An alert of TLS is all that may come.
      EXPECT_THAT(answer, AllOf(Not(HasSubstr("HTTP")), Not(HasSubstr("wan_")))) << name;
      EXPECT_TRUE(answer.empty() || answer[0] == '\x15') << name;
    }
  }
  const ProcessResult plain =
      RunProcess({Binary("wanctl"), "--server", addresses_["grpc"], "--timeout", "3", "list",
                  "--token-file", folder_.File("alice.token")});
  EXPECT_EQ(plain.exit_code, 6) << plain.err;
  const auto channel = grpc::CreateChannel(addresses_["grpc"], grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  health::HealthCheckResponse response;
  EXPECT_EQ(health::Health::NewStub(channel)->Check(&context, {}, &response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace wan::e2e
