#include "tests/client/fakes/tcp_relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

namespace wan::fakes {
namespace {

sockaddr_in Local(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void Require(bool ok, const char* what) {
  if (ok) return;
  std::cerr << "TcpRelay: " << what << " failed\n";
  std::abort();
}

// One portion from one socket to the other; false when either is closed.
bool Pass(int from, int to) {
  char buffer[16384];
  const ssize_t got = recv(from, buffer, sizeof(buffer), 0);
  if (got <= 0) return false;
  for (ssize_t sent = 0; sent < got;) {
    const ssize_t n = send(to, buffer + sent, got - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += n;
  }
  return true;
}

void PassBothWays(int a, int b) {
  pollfd fds[] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
  for (;;) {
    if (poll(fds, 2, -1) < 0) continue;
    if (fds[0].revents != 0 && !Pass(a, b)) break;
    if (fds[1].revents != 0 && !Pass(b, a)) break;
  }
  shutdown(a, SHUT_RDWR);
  shutdown(b, SHUT_RDWR);
}

}  // namespace

TcpRelay::TcpRelay(int target_port)
    : target_port_(target_port), listen_fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = Local(0);
  socklen_t size = sizeof(address);
  Require(bind(listen_fd_, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
  Require(listen(listen_fd_, 16) == 0, "listen");
  Require(getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0,
          "getsockname");
  port_ = ntohs(address.sin_port);
  accept_thread_ = std::thread([this] { Accept(); });
}

TcpRelay::~TcpRelay() {
  shutdown(listen_fd_, SHUT_RDWR);
  accept_thread_.join();
  BreakConnections();
  for (Connection& connection : connections_) {
    connection.thread.join();
    close(connection.client_fd);
    close(connection.server_fd);
  }
  close(listen_fd_);
}

std::string TcpRelay::address() const { return "127.0.0.1:" + std::to_string(port_); }

void TcpRelay::Accept() {
  for (;;) {
    const int client = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in target = Local(target_port_);
    Require(connect(server, reinterpret_cast<const sockaddr*>(&target), sizeof(target)) == 0,
            "connect");
    const std::lock_guard lock(mutex_);
    connections_.push_back(
        {client, server, std::thread([client, server] { PassBothWays(client, server); })});
  }
}

void TcpRelay::BreakConnections() {
  const std::lock_guard lock(mutex_);
  for (const Connection& connection : connections_) {
    shutdown(connection.client_fd, SHUT_RDWR);
    shutdown(connection.server_fd, SHUT_RDWR);
  }
}

}  // namespace wan::fakes
