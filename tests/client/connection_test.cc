#include "client/connection.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "client/video_client.h"
#include "tests/client/fakes/scripted_server.h"

namespace wan::client {
namespace {

// A port of 127.0.0.1 that is bound; `listening` or refusing.
class Port {
 public:
  explicit Port(bool listening) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    if (listening) {
      EXPECT_EQ(listen(fd_, 1), 0);
    }
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~Port() { close(fd_); }
  const std::string& address() const { return address_; }

 private:
  int fd_;
  std::string address_;
};

TEST(ConnectionTest, NobodyListens) {
  const Port port(/*listening=*/false);
  const Connection connection({.server = port.address()});
  EXPECT_EQ(VideoClient(connection).GetJob("jobs/a").status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(ConnectionTest, SomebodyListensButSaysNothing) {
  const Port port(/*listening=*/true);
  const Connection connection(
      {.server = port.address(), .deadline = absl::Now() + absl::Milliseconds(50)});
  EXPECT_EQ(VideoClient(connection).GetJob("jobs/a").status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(ConnectionTest, AnAttemptToConnectTakesNoLongerThanItMay) {
  const Port port(/*listening=*/true);
  const Connection connection(
      {.server = port.address(), .connect_timeout = absl::Milliseconds(50)});
  EXPECT_EQ(VideoClient(connection).GetJob("jobs/a").status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(ConnectionTest, AServerThatAnswersTooLate) {
  fakes::ScriptedServer server;
  server.scripts.generate = [](const auto&) {
    return fakes::Stream<wan::v1::Event>{.messages = {wan::v1::Event()}, .hold = true};
  };
  const Connection connection(
      {.server = server.address(), .deadline = absl::Now() + absl::Seconds(1)});
  int events = 0;
  const absl::Status status =
      VideoClient(connection).Generate({}, [&](const wan::v1::Event&) { ++events; }).status();
  EXPECT_EQ(events, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

TEST(ConnectionTest, AStopBeforeTheCall) {
  fakes::ScriptedServer server;
  const Connection connection({.server = server.address()});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(VideoClient(connection).GetJob("jobs/a", stop.get_token()).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace wan::client
