#include "client/sha256.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace wan::client {

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest{EVP_MD_CTX_new(),
                                                                 &EVP_MD_CTX_free};
};

Sha256::Sha256() : context_(new Context) {
  EVP_DigestInit_ex(context_->digest.get(), EVP_sha256(), nullptr);
}

Sha256::~Sha256() = default;

void Sha256::Update(std::string_view bytes) {
  EVP_DigestUpdate(context_->digest.get(), bytes.data(), bytes.size());
}

std::string Sha256::Finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(context_->digest.get(), digest, &size);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<char*>(digest), size));
}

}  // namespace wan::client
