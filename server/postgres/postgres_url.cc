#include "server/postgres/postgres_url.h"

#include <libpq-fe.h>

#include <memory>
#include <string_view>

#include "absl/strings/match.h"

namespace wan::server {

absl::Status CheckPostgresUrl(const std::string& url) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(url.c_str(), nullptr), &PQconninfoFree);
  const bool is_url =
      absl::StartsWith(url, "postgresql://") || absl::StartsWith(url, "postgres://");
  if (!is_url || options == nullptr) {
    return absl::InvalidArgumentError(
        "is not the URL of a PostgreSQL database; must be postgresql://USER@HOST:PORT/DATABASE, "
        "for example postgresql://wan@db.example.com/wan?sslmode=verify-full");
  }
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    const std::string_view keyword = option->keyword;
    if (option->val == nullptr || (keyword != "password" && keyword != "sslpassword")) continue;
    return absl::InvalidArgumentError(
        "contains a password, which everybody would see who sees the settings; put the password "
        "into a file and name the file in the variable PGPASSFILE, or set PGPASSWORD");
  }
  return absl::OkStatus();
}

}  // namespace wan::server
