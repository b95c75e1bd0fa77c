#include "tests/support/tcp_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace wan::support {
namespace {

sockaddr_in AddressOf(const std::string& host, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

}  // namespace

TcpClient::TcpClient(int port, const std::string& source)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const sockaddr_in from = AddressOf(source, 0);
  const sockaddr_in to = AddressOf("127.0.0.1", port);
  if (fd_ < 0 || bind(fd_, reinterpret_cast<const sockaddr*>(&from), sizeof(from)) != 0 ||
      connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) {
    std::perror("TcpClient");
    std::abort();
  }
}

TcpClient::TcpClient(TcpClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

TcpClient::~TcpClient() {
  if (fd_ >= 0) close(fd_);
}

bool TcpClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void TcpClient::Reset() {
  const linger discard = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &discard, sizeof(discard));
  close(std::exchange(fd_, -1));
}

void TcpClient::SendNoMore() { shutdown(fd_, SHUT_WR); }

std::string TcpClient::Read(size_t bytes) {
  std::string read(bytes, '\0');
  const ssize_t count = bytes == 0 ? 0 : recv(fd_, read.data(), bytes, MSG_WAITALL);
  read.resize(count < 0 ? 0 : static_cast<size_t>(count));
  return read;
}

std::string TcpClient::ReadTo(std::string_view text) {
  std::string read;
  while (!read.ends_with(text)) {
    const std::string byte = Read(1);
    if (byte.empty()) break;
    read += byte;
  }
  return read;
}

std::string TcpClient::ReadToEnd() {
  std::string all;
  char chunk[4096];
  for (;;) {
    const ssize_t count = recv(fd_, chunk, sizeof(chunk), 0);
    if (count <= 0) return all;
    all.append(chunk, static_cast<size_t>(count));
  }
}

bool TcpClient::AwaitByteOrEnd() {
  char byte = 0;
  return recv(fd_, &byte, 1, MSG_PEEK) <= 0;
}

}  // namespace wan::support
