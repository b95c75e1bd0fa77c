// A plain TCP connection to a server on this machine, for tests of what arrives byte by byte.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace wan::support {

class TcpClient {
 public:
  // Connects to `port` of 127.0.0.1, from `source`, an address of 127.0.0.0/8. Aborts the test
  // program if the machine has no descriptor or port left for it.
  explicit TcpClient(int port, const std::string& source = "127.0.0.1");
  TcpClient(TcpClient&& other) noexcept;
  TcpClient& operator=(TcpClient&&) = delete;
  ~TcpClient();

  // Whether all of it was taken before the server closed the connection.
  bool Send(std::string_view bytes);

  // Closes the connection so that every later write of the server fails.
  void Reset();

  // Tells the server that no more bytes come; those of the server still arrive.
  void SendNoMore();

  // The next so many bytes; fewer if the server closes the connection before. Blocks until then.
  std::string Read(size_t bytes);

  // Everything up to and with `text`; everything if the server closes the connection before. Blocks
  // until then.
  std::string ReadTo(std::string_view text);

  // Everything that arrives until the server closes the connection. Blocks until then.
  std::string ReadToEnd();

  // Blocks until the server has sent something or closed the connection; true if it has closed it.
  bool AwaitByteOrEnd();

 private:
  int fd_;
};

}  // namespace wan::support
