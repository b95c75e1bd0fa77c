// Encrypts texts that callers keep for the server but must neither read nor forge, with
// AES-256-GCM.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wan::server {

inline constexpr size_t kSealKeyBytes = 32;

// Returns `text` encrypted, with different bytes on every call. `key` must have kSealKeyBytes
// bytes.
std::string Seal(std::string_view key, std::string_view text);

// Inverse of Seal with the same key; returns nothing for other bytes.
std::optional<std::string> Unseal(std::string_view key, std::string_view sealed);

}  // namespace wan::server
