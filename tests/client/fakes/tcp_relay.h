// A TCP connection that a test can break: between a client and a server of this machine.
#pragma once

#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace wan::fakes {

// Thread-safe.
class TcpRelay {
 public:
  // Listens on a free port of 127.0.0.1 and passes on to `target_port` there.
  explicit TcpRelay(int target_port);
  ~TcpRelay();

  // "127.0.0.1:PORT".
  std::string address() const;

  // Breaks every connection. New ones are taken as before.
  void BreakConnections();

 private:
  struct Connection {
    int client_fd;
    int server_fd;
    std::thread thread;
  };

  void Accept();

  const int target_port_;
  int listen_fd_;
  int port_ = 0;
  std::mutex mutex_;
  std::list<Connection> connections_;
  std::thread accept_thread_;
};

}  // namespace wan::fakes
