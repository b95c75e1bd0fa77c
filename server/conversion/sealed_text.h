// Encrypts texts that callers carry for the server and must neither read nor forge: AES-256-GCM.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wan::server {

inline constexpr size_t kSealKeyBytes = 32;

// Returns `text` encrypted; the bytes differ on every call. `key` has kSealKeyBytes.
std::string Seal(std::string_view key, std::string_view text);

// Returns the text of what Seal made with this key; nothing for other bytes.
std::optional<std::string> Unseal(std::string_view key, std::string_view sealed);

}  // namespace wan::server
