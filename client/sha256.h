// SHA-256 of bytes as they come.
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

  // Lower-case hex of everything so far; nothing may follow.
  std::string Finish();

 private:
  struct Context;
  const std::unique_ptr<Context> context_;
};

}  // namespace wan::client
