// A connection of HTTP/2 that makes calls of gRPC and takes nothing of what they answer.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/tcp_client.h"

namespace wan::support {

// The server may send no byte of an answer, because the windows of the connection's streams are
// zero; headers, pings and resets are no part of the windows and arrive.
class UnreadCalls {
 public:
  // To `port` of 127.0.0.1. `token` is sent with each call; empty: none.
  explicit UnreadCalls(int port, std::string token = {});

  // Begins a call of "/SERVICE/METHOD" with one request; returns without waiting for anything.
  void Begin(std::string_view path, std::string_view request);

  // Blocks until the server has reset so many of the calls in all. False if it closed the
  // connection before.
  bool AwaitResets(int count);

 private:
  // Reads a frame's header and drops its content. False at the end of the connection.
  bool ReadFrame(unsigned char* type);

  TcpClient connection_;
  const std::string token_;
  unsigned next_stream_ = 1;
  int resets_ = 0;
};

}  // namespace wan::support
