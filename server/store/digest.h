// SHA-256.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace wan::server {

// Hashes what comes in pieces. One thread at a time.
class Sha256 {
 public:
  Sha256();
  void Update(std::string_view data);
  // The digest in lower-case hex. Called once.
  std::string FinishHex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string Sha256Hex(std::string_view data);

}  // namespace wan::server
