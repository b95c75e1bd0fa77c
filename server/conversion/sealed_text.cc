#include "server/conversion/sealed_text.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <cstdlib>
#include <memory>

namespace wan::server {
namespace {

constexpr size_t kNonceBytes = 12;
constexpr size_t kTagBytes = 16;

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

Context NewContext() { return {EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free}; }

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

}  // namespace

std::string Seal(std::string_view key, std::string_view text) {
  std::string nonce(kNonceBytes, '\0');
  std::string hidden(text.size(), '\0');
  std::string tag(kTagBytes, '\0');
  const Context context = NewContext();
  int size = 0;
  const bool sealed =
      key.size() == kSealKeyBytes && context != nullptr &&
      RAND_bytes(Bytes(nonce), static_cast<int>(nonce.size())) == 1 &&
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, Bytes(key), Bytes(nonce)) ==
          1 &&
      EVP_EncryptUpdate(context.get(), Bytes(hidden), &size, Bytes(text),
                        static_cast<int>(text.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), Bytes(tag), &size) == 1 &&  // GCM adds no bytes here
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(tag.size()),
                          tag.data()) == 1;
  // OpenSSL 3 fails here only without memory or entropy. Abort the process then, because plain text
  // must not leave the server.
  if (!sealed) std::abort();
  return nonce + hidden + tag;
}

std::optional<std::string> Unseal(std::string_view key, std::string_view sealed) {
  if (key.size() != kSealKeyBytes || sealed.size() < kNonceBytes + kTagBytes) return std::nullopt;
  const std::string_view nonce = sealed.substr(0, kNonceBytes);
  std::string tag(sealed.substr(sealed.size() - kTagBytes));
  sealed.remove_prefix(kNonceBytes);
  sealed.remove_suffix(kTagBytes);
  std::string text(sealed.size(), '\0');
  const Context context = NewContext();
  int size = 0;
  const bool opened = context != nullptr &&
                      EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, Bytes(key),
                                         Bytes(nonce)) == 1 &&
                      EVP_DecryptUpdate(context.get(), Bytes(text), &size, Bytes(sealed),
                                        static_cast<int>(sealed.size())) == 1 &&
                      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG,
                                          static_cast<int>(tag.size()), tag.data()) == 1 &&
                      EVP_DecryptFinal_ex(context.get(), Bytes(tag), &size) == 1;
  if (!opened) return std::nullopt;
  return text;
}

}  // namespace wan::server
