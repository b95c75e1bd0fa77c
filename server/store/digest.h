// Computes SHA-256 digests.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace wan::server {

// Hashes data that comes in pieces. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  void Update(std::string_view data);
  // Returns the digest in lower-case hex. Call FinishHex once, after the last Update.
  std::string FinishHex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// Returns the digest of `data` in lower-case hex.
std::string Sha256Hex(std::string_view data);

}  // namespace wan::server
