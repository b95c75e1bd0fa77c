// moto, which behaves like S3, as a process of its own. It does not check signatures.
#pragma once

#include <sys/types.h>

#include <string>

namespace wan::support {

// Not thread-safe.
class MotoServer {
 public:
  // Whether scripts/setup has fetched moto.
  static bool IsThere();

  // Starts it on a free port of 127.0.0.1, empty but for the bucket "videos".
  MotoServer();
  MotoServer(const MotoServer&) = delete;
  MotoServer& operator=(const MotoServer&) = delete;
  ~MotoServer();

  // Ends the process, which loses its objects.
  void Stop();
  // Starts it again on the same port, empty but for the bucket.
  void Restart();

  // "http://127.0.0.1:PORT".
  std::string endpoint() const;
  // "s3://videos/PREFIX?endpoint=...", a value of the setting `objects`.
  std::string Place(const std::string& prefix) const;

 private:
  void Start();

  pid_t pid_ = -1;
  int input_ = -1;  // closing it ends the process
  int port_ = 0;
};

}  // namespace wan::support
