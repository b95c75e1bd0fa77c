// Callers and their roles.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wan::server {

// Each role includes the rights of the roles before it.
enum class Role {
  kViewer,  // reads: the jobs of its own principal, devices, the server's facts
  kUser,    // also creates and cancels jobs of its own principal
  kAdmin,   // also sees and cancels all jobs, and manages models
};

// Returns "viewer", "user" or "admin".
std::string_view NameOf(Role role);
std::optional<Role> ParseRole(std::string_view name);

struct Principal {
  // The name of a token, or the subject of a client certificate. Empty on a server that does not
  // authenticate its callers, who are then all administrators.
  std::string name;
  Role role = Role::kAdmin;

  friend bool operator==(const Principal&, const Principal&) = default;
};

}  // namespace wan::server
