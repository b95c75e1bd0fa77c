// Encrypts texts that the server gives to callers and gets back, so that callers can neither read
// nor forge them, with AES-256-GCM.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wan::server {

inline constexpr size_t kSealKeyBytes = 32;

// Returns `text` encrypted; the bytes are different on every call. `key` must have kSealKeyBytes
// bytes.
std::string Seal(std::string_view key, std::string_view text);

// The inverse of Seal with the same key; returns nothing for bytes that Seal has not made.
std::optional<std::string> Unseal(std::string_view key, std::string_view sealed);

}  // namespace wan::server
