// Computes the SHA-256 of bytes that arrive in pieces. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace wan::client {

class Sha256 {
 public:
  Sha256();
  ~Sha256();

  void Update(std::string_view bytes);

  // Returns the digest of all bytes in lower-case hex. Call no other function of the object
  // afterwards.
  std::string Finish();

 private:
  struct Context;
  const std::unique_ptr<Context> context_;
};

}  // namespace wan::client
