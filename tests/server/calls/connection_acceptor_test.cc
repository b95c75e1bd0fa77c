// Who is let in, without gRPC: this test owns the sockets that are handed over.
#include "server/calls/connection_acceptor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <memory>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "tests/support/tcp_client.h"

namespace wan::server {
namespace {

using support::TcpClient;

class ConnectionAcceptorTest : public ::testing::Test {
 protected:
  ~ConnectionAcceptorTest() override {
    if (acceptor_ != nullptr) acceptor_->Stop();
    for (const int socket : sockets_) close(socket);
  }

  void Start(int total, int per_address) {
    auto listening = ConnectionAcceptor::Listen({"127.0.0.1", 0}, {total, per_address});
    ASSERT_TRUE(listening.ok()) << listening.status();
    acceptor_ = *std::move(listening);
    acceptor_->Start(
        [this](int socket) {
          // One byte tells the client that it was let in. The socket is noted before the client
          // can know, so that CloseOneSocket closes the one that entered last.
          absl::MutexLock lock(&mutex_);
          sockets_.push_back(socket);
          EXPECT_EQ(write(socket, "!", 1), 1);
        },
        [this](bool accepting) {
          absl::MutexLock lock(&mutex_);
          accepting_.push_back(accepting);
        });
  }

  // Connects from an address of this machine; whether it was let in.
  bool Enters(const std::string& source = "127.0.0.1") {
    clients_.emplace_back(acceptor_->port(), source);
    return !clients_.back().AwaitByteOrEnd();
  }

  // What gRPC does when a caller has gone.
  void CloseOneSocket() {
    absl::MutexLock lock(&mutex_);
    ASSERT_FALSE(sockets_.empty());
    close(sockets_.back());
    sockets_.pop_back();
  }

  std::vector<bool> AwaitAccepting(size_t changes) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&] { return accepting_.size() >= changes; };
    mutex_.Await(absl::Condition(&enough));
    return accepting_;
  }

  std::unique_ptr<ConnectionAcceptor> acceptor_;
  std::list<TcpClient> clients_;
  absl::Mutex mutex_;
  std::vector<int> sockets_;
  std::vector<bool> accepting_;
};

TEST_F(ConnectionAcceptorTest, AnAddressHasItsShareAndLeavesTheOthersTheirs) {
  Start(10, 2);
  EXPECT_TRUE(Enters());
  EXPECT_TRUE(Enters());
  EXPECT_FALSE(Enters()) << "one too many";
  EXPECT_TRUE(Enters("127.0.0.2"));
  ConnectionStats stats = acceptor_->Stats();
  EXPECT_EQ(stats.open, 3);
  EXPECT_EQ(stats.limit, 10);
  EXPECT_EQ(stats.refused_address, 1);
  EXPECT_EQ(stats.refused_total, 0);
  CloseOneSocket();  // the other address' one: no room for the first
  EXPECT_FALSE(Enters());
  CloseOneSocket();
  EXPECT_TRUE(Enters()) << "who has gone is not counted any more";
  EXPECT_EQ(acceptor_->Stats().open, 2);
  EXPECT_THAT(accepting_, ::testing::IsEmpty()) << "one greedy address is not the server's failure";
}

TEST_F(ConnectionAcceptorTest, InAllThereAreSoManyAndItIsTold) {
  Start(2, 2);
  EXPECT_TRUE(Enters("127.0.0.1"));
  EXPECT_TRUE(Enters("127.0.0.2"));
  EXPECT_FALSE(Enters("127.0.0.3"));
  EXPECT_THAT(AwaitAccepting(1), ::testing::ElementsAre(false));
  EXPECT_EQ(acceptor_->Stats().refused_total, 1);
  CloseOneSocket();
  EXPECT_THAT(AwaitAccepting(2), ::testing::ElementsAre(false, true));
  EXPECT_TRUE(Enters("127.0.0.3"));
}

// The process' own limit, lowered to what is open now.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    getrlimit(RLIMIT_NOFILE, &before_);
    // The lowest free descriptor is above all that are open, once the gaps are filled.
    rlimit lowered = before_;
    for (int fd = open("/dev/null", O_RDONLY); fd >= 0; fd = open("/dev/null", O_RDONLY)) {
      fillers_.push_back(fd);
      if (fillers_.size() < 64) continue;
      lowered.rlim_cur = static_cast<rlim_t>(*std::max_element(fillers_.begin(), fillers_.end()));
      setrlimit(RLIMIT_NOFILE, &lowered);
    }
  }
  ~NoDescriptorsLeft() {
    for (const int fd : fillers_) close(fd);
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  // Makes room for one.
  void FreeOne() {
    close(fillers_.front());
    fillers_.erase(fillers_.begin());
  }

 private:
  rlimit before_ = {};
  std::vector<int> fillers_;
};

TEST_F(ConnectionAcceptorTest, WithoutDescriptorsCallersAreRefusedAndLaterOnesAreAccepted) {
  Start(1000, 1000);
  {
    NoDescriptorsLeft none;
    // The client takes the one that is left.
    none.FreeOne();
    EXPECT_FALSE(Enters());
    EXPECT_THAT(AwaitAccepting(1), ::testing::ElementsAre(false));
    EXPECT_GE(acceptor_->Stats().refused_descriptors, 1);
  }
  EXPECT_THAT(AwaitAccepting(2), ::testing::ElementsAre(false, true));
  EXPECT_TRUE(Enters());
}

TEST_F(ConnectionAcceptorTest, StopClosesThePort) {
  Start(10, 10);
  const int port = acceptor_->port();
  acceptor_->Stop();
  acceptor_.reset();
  EXPECT_TRUE(ConnectionAcceptor::Listen({"127.0.0.1", port}, {10, 10}).ok());
}

TEST_F(ConnectionAcceptorTest, AnAddressThatCannotBeHadIsNamed) {
  Start(10, 10);
  for (const HostPort& address :
       {HostPort{"127.0.0.1", acceptor_->port()}, HostPort{"192.0.2.1", 0}}) {
    const absl::Status status = ConnectionAcceptor::Listen(address, {10, 10}).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr("listen: cannot listen on " + ToString(address)));
  }
}

TEST_F(ConnectionAcceptorTest, TheWildcardListensToIpv4) {
  auto listening = ConnectionAcceptor::Listen({"0.0.0.0", 0}, {10, 10});
  ASSERT_TRUE(listening.ok()) << listening.status();
  acceptor_ = *std::move(listening);
  acceptor_->Start(
      [this](int socket) {
        EXPECT_EQ(write(socket, "!", 1), 1);
        absl::MutexLock lock(&mutex_);
        sockets_.push_back(socket);
      },
      [](bool) {});
  EXPECT_TRUE(Enters());
}

}  // namespace
}  // namespace wan::server
