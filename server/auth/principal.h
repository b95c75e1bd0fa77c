// Callers and their roles.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wan::server {

// Each role may do what the roles before it may do.
enum class Role {
  kViewer,  // reads: the jobs of its own principal, devices, the server's facts
  kUser,    // also creates and cancels jobs of its own principal
  kAdmin,   // also sees and cancels everybody's jobs, and manages models
};

// "viewer", "user", "admin".
std::string_view NameOf(Role role);
std::optional<Role> ParseRole(std::string_view name);

struct Principal {
  // The name of a token, or the subject of a client certificate. Empty on a server that does not
  // authenticate its callers: they are all the same, nameless administrator.
  std::string name;
  Role role = Role::kAdmin;

  friend bool operator==(const Principal&, const Principal&) = default;
};

}  // namespace wan::server
