#include "server/auth/principal.h"

#include <array>
#include <utility>

namespace wan::server {
namespace {

constexpr std::array kRoles = {
    std::pair{Role::kViewer, std::string_view("viewer")},
    std::pair{Role::kUser, std::string_view("user")},
    std::pair{Role::kAdmin, std::string_view("admin")},
};

}  // namespace

std::string_view NameOf(Role role) { return kRoles[static_cast<size_t>(role)].second; }

std::optional<Role> ParseRole(std::string_view name) {
  for (const auto& [role, known] : kRoles) {
    if (known == name) return role;
  }
  return std::nullopt;
}

}  // namespace wan::server
