#include "server/postgres/postgres_url.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wan::server {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(PostgresUrlTest, TakesUrls) {
  for (const char* const url :
       {"postgresql://wan@db.example.com/wan", "postgres://wan@[::1]:5433/wan?sslmode=verify-full",
        "postgresql://wan@a,b/wan", "postgresql://wan@/wan?host=/run/postgresql"}) {
    EXPECT_TRUE(CheckPostgresUrl(url).ok()) << url << ": " << CheckPostgresUrl(url);
  }
}

TEST(PostgresUrlTest, RefusesOtherTextsWithoutShowingThem) {
  for (const char* const url :
       {"secret", "mysql://wan:secret@db/wan", "host=db password=secret",
        "postgresql://wan:secret%zz@db/wan", "postgresql://wan:secret@[db/wan",
        "postgresql://db/wan?secret=1"}) {
    const absl::Status refused = CheckPostgresUrl(url);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << url;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("must be postgresql://USER@HOST")) << url;
    EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("secret"))) << url;
  }
}

TEST(PostgresUrlTest, RefusesPasswordsWithoutShowingThem) {
  for (const char* const url :
       {"postgresql://wan:secret@db/wan", "postgresql://wan@db/wan?password=secret",
        "postgresql://wan@db/wan?sslpassword=secret"}) {
    const absl::Status refused = CheckPostgresUrl(url);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("PGPASSFILE")) << url;
    EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("secret"))) << url;
  }
}

}  // namespace
}  // namespace wan::server
