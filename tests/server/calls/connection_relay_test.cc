// The relay between real sockets: this test is the caller, and in gRPC's place.
#include "server/calls/connection_relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "server/calls/connection_acceptor.h"
#include "tests/fakes/fake_clock.h"
#include "tests/support/http2_bytes.h"
#include "tests/support/tcp_client.h"

namespace wan::server {
namespace {

using support::Frame;
using support::HealthCheckHeaders;
using support::Hello;
using support::TcpClient;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// gRPC's end of a connection.
class ServerEnd {
 public:
  explicit ServerEnd(int socket) : socket_(socket) {}
  ServerEnd(const ServerEnd&) = delete;
  ServerEnd& operator=(const ServerEnd&) = delete;
  ~ServerEnd() { Close(); }

  void Close() {
    if (socket_ >= 0) close(std::exchange(socket_, -1));
  }

  // What gRPC would say of the peer.
  std::string Peer() const {
    sockaddr_un name = {};
    socklen_t size = sizeof(name);
    EXPECT_EQ(getpeername(socket_, reinterpret_cast<sockaddr*>(&name), &size), 0);
    const size_t text = size - offsetof(sockaddr_un, sun_path) - 1;
    return "unix-abstract:" + std::string(name.sun_path + 1, text);
  }

  void Send(std::string_view bytes) const {
    while (!bytes.empty()) {
      Await(POLLOUT);
      const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ASSERT_GT(sent, 0);
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

  // Blocks for that many bytes, or fewer at the end.
  std::string Read(size_t bytes) const {
    std::string all;
    std::vector<char> chunk(size_t{64} << 10);
    while (all.size() < bytes) {
      Await(POLLIN);
      const ssize_t count =
          recv(socket_, chunk.data(), std::min(chunk.size(), bytes - all.size()), 0);
      if (count <= 0) break;
      all.append(chunk.data(), static_cast<size_t>(count));
    }
    return all;
  }
  std::string ReadToEnd() const { return Read(SIZE_MAX); }

 private:
  void Await(short events) const {
    pollfd entry = {socket_, events, 0};
    poll(&entry, 1, -1);
  }

  int socket_;
};

class ConnectionRelayTest : public ::testing::Test {
 protected:
  ~ConnectionRelayTest() override {
    acceptor_->Stop();
    relay_->Stop();
  }

  void Start(const RelayOptions& options) {
    relay_ = std::make_unique<ConnectionRelay>(
        options,
        ConnectionRelay::Callbacks{[this](int socket) {
                                     absl::MutexLock lock(&mutex_);
                                     servers_.push_back(std::make_unique<ServerEnd>(socket));
                                   },
                                   [this](const RefusedCaller& caller) {
                                     absl::MutexLock lock(&mutex_);
                                     refused_.push_back(caller);
                                   }});
    auto listening = ConnectionAcceptor::Listen({"127.0.0.1", 0}, {100, 100});
    ASSERT_TRUE(listening.ok()) << listening.status();
    acceptor_ = *std::move(listening);
    acceptor_->Start([this](int socket) { relay_->Add(socket); }, [](bool) {});
  }
  void Start() { Start({clock_, nullptr, callers_}); }

  // Blocks until so many connections were handed over; the last of them.
  ServerEnd& AwaitServer(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&] { return servers_.size() >= count; };
    mutex_.Await(absl::Condition(&enough));
    return *servers_[count - 1];
  }
  size_t ServerCount() {
    absl::MutexLock lock(&mutex_);
    return servers_.size();
  }

  TcpClient Connect() { return TcpClient(acceptor_->port()); }

  fakes::FakeClock clock_;
  CallerDirectory callers_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<ServerEnd>> servers_;
  std::vector<RefusedCaller> refused_;
  std::unique_ptr<ConnectionRelay> relay_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;
};

std::string Data(uint32_t stream, const std::string& payload) {
  return Frame(support::kData, 0, stream, payload);
}

TEST_F(ConnectionRelayTest, BytesPassBothWaysAndTheCallerIsKnown) {
  Start();
  TcpClient client = Connect();
  ServerEnd& server = AwaitServer(1);
  const auto caller = callers_.Find(server.Peer());
  ASSERT_NE(caller, nullptr);
  EXPECT_THAT(caller->peer, StartsWith("ipv4:127.0.0.1:"));
  EXPECT_EQ(caller->certificate_subject, "");
  EXPECT_TRUE(client.Send(Hello()));
  EXPECT_EQ(server.Read(Hello().size()), Hello());
  server.Send(Data(0, "answer"));
  server.Close();
  EXPECT_EQ(client.ReadToEnd(), Data(0, "answer"));
}

TEST_F(ConnectionRelayTest, NamesAreNotGivenTwice) {
  Start();
  std::optional<TcpClient> client(Connect());
  const std::string first = AwaitServer(1).Peer();
  client.reset();
  EXPECT_EQ(AwaitServer(1).ReadToEnd(), "");
  AwaitServer(1).Close();
  while (callers_.Find(first) != nullptr) {
  }
  client.emplace(Connect());
  EXPECT_NE(AwaitServer(2).Peer(), first);
  EXPECT_EQ(callers_.Find("ipv4:127.0.0.1:1"), nullptr);
}

TEST_F(ConnectionRelayTest, TheEndOfACallerIsSeenAndItIsCountedNoMore) {
  Start();
  {
    TcpClient client = Connect();
    client.Send(Hello());
    AwaitServer(1);
    EXPECT_EQ(acceptor_->Stats().open, 1);
  }
  EXPECT_EQ(AwaitServer(1).ReadToEnd(), Hello());
  AwaitServer(1).Close();
  while (acceptor_->Stats().open > 0) {
  }
}

TEST_F(ConnectionRelayTest, WhatOneSideDoesNotTakeIsNotRead) {
  Start();
  TcpClient client = Connect();
  ServerEnd& server = AwaitServer(1);
  // Far more than all buffers on the way have.
  std::string sent = Hello();
  for (int i = 0; i < 4'000; ++i) sent += Data(1, std::string(16'000, static_cast<char>(i)));
  std::thread up([&] { EXPECT_TRUE(client.Send(sent)); });
  EXPECT_EQ(server.Read(sent.size()), sent);
  up.join();
  std::thread down([&] {
    server.Send(sent.substr(support::kHttp2Preface.size()));
    server.Close();
  });
  EXPECT_EQ(client.ReadToEnd(), sent.substr(support::kHttp2Preface.size()));
  down.join();
}

TEST_F(ConnectionRelayTest, WhoBreaksARuleIsToldAndGrpcSeesTheEnd) {
  Start();
  for (size_t i = 1; i <= 2; ++i) {
    TcpClient client = Connect();
    ServerEnd& server = AwaitServer(i);
    const std::string name = server.Peer();
    server.Send(Data(0, "settings"));
    EXPECT_TRUE(client.Send(Hello()));
    EXPECT_EQ(server.Read(Hello().size()), Hello());
    client.Send(Frame(support::kHeaders, support::kEndHeaders, 2, HealthCheckHeaders()));
    EXPECT_EQ(server.ReadToEnd(), "") << "nothing of it passes";
    EXPECT_EQ(callers_.Find(name), nullptr);
    const std::string answer = client.ReadToEnd();
    EXPECT_THAT(answer, StartsWith(Data(0, "settings")));
    EXPECT_THAT(answer, EndsWith("the number of a caller's stream must be odd"));
  }
  EXPECT_EQ(relay_->Stats().misused.at("protocol"), 2);
  absl::MutexLock lock(&mutex_);
  ASSERT_THAT(refused_, SizeIs(1)) << "an address has a line in a minute";
  EXPECT_THAT(refused_[0].peer, StartsWith("ipv4:127.0.0.1:"));
}

TEST_F(ConnectionRelayTest, AFrameThatIsUnderWayHasNoReasonInsideOfIt) {
  Start();
  TcpClient client = Connect();
  ServerEnd& server = AwaitServer(1);
  const std::string half = Data(1, "an answer").substr(0, 12);
  server.Send(half);
  EXPECT_FALSE(client.AwaitByteOrEnd());
  client.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.ReadToEnd(), half);
}

TEST_F(ConnectionRelayTest, ConnectionsThatLeaveTooManyCallsBehindMakeTheNextOneWait) {
  RelayOptions options{clock_, nullptr, callers_};
  options.address.resets = {.most = 2, .per_second = 1'000, .debt = 2};
  Start(options);
  {
    TcpClient client = Connect();
    std::string calls = Hello();
    for (uint32_t stream = 1; stream < 9; stream += 2) {
      calls += Frame(support::kHeaders, support::kEndHeaders, stream, HealthCheckHeaders());
    }
    client.Send(calls);
    EXPECT_EQ(AwaitServer(1).Read(calls.size()), calls);
  }
  AwaitServer(1).ReadToEnd();
  AwaitServer(1).Close();
  while (acceptor_->Stats().open > 0) {
  }
  TcpClient client = Connect();
  while (acceptor_->Stats().open == 0) {
  }
  EXPECT_EQ(ServerCount(), 1u) << "the clock stands, so the debt stays";
  clock_.Advance(absl::Seconds(1));
  AwaitServer(2);
}

// gRPC's shutdown waits for what it has written, which nobody may read.
TEST_F(ConnectionRelayTest, AnEndDoesNotWaitForTheCaller) {
  Start();
  TcpClient client = Connect();
  ServerEnd& server = AwaitServer(1);
  relay_->StopHandingOver();  // from now on the relay knows all connections
  relay_->CloseWithin(std::chrono::milliseconds(1));
  EXPECT_EQ(server.ReadToEnd(), "");
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(ConnectionRelayTest, AStopPassesTheLastBytesOn) {
  Start();
  TcpClient client = Connect();
  ServerEnd& server = AwaitServer(1);
  server.Send(Data(0, "last words"));
  relay_->Stop();
  EXPECT_EQ(client.ReadToEnd(), Data(0, "last words"));
  EXPECT_EQ(server.ReadToEnd(), "");
  TcpClient late = Connect();
  EXPECT_EQ(ServerCount(), 1u);
}

}  // namespace
}  // namespace wan::server
