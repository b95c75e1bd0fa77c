// Callers and their roles.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wan::server {

// Each role has its own rights and those of all roles above it in this list.
enum class Role {
  kViewer,  // sees the jobs of its own principal, the devices and the server's facts
  kUser,    // also creates and cancels jobs of its own principal
  kAdmin,   // also sees and cancels jobs of all principals, and manages models
};

// Returns "viewer", "user" or "admin".
std::string_view NameOf(Role role);
std::optional<Role> ParseRole(std::string_view name);

struct Principal {
  // The name of a token, or the subject of a client certificate. Empty on a server that does not
  // authenticate its callers; then every caller is an administrator.
  std::string name;
  Role role = Role::kAdmin;

  friend bool operator==(const Principal&, const Principal&) = default;
};

}  // namespace wan::server
