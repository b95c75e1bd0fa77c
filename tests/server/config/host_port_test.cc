#include "server/config/host_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wan::server {
namespace {

TEST(HostPortTest, ReadsNamesAndBothKindsOfAddress) {
  const struct {
    std::string text, host;
    int port;
  } cases[] = {
      {"127.0.0.1:50051", "127.0.0.1", 50051},
      {"localhost:0", "localhost", 0},
      {"[::1]:65535", "::1", 65535},
      {"[::]:1", "::", 1},
      {"wan-0.wan.svc:80", "wan-0.wan.svc", 80},
  };
  for (const auto& c : cases) {
    const auto parsed = ParseHostPort(c.text);
    ASSERT_TRUE(parsed.ok()) << c.text << ": " << parsed.status();
    EXPECT_EQ(parsed->host, c.host);
    EXPECT_EQ(parsed->port, c.port);
    EXPECT_EQ(ToString(*parsed), c.text);
  }
}

TEST(HostPortTest, RefusesEverythingElseAndSaysWhatIsRight) {
  for (const char* text :
       {"", "localhost", ":80", "host:", "host:x", "host:-1", "host:65536", "host:80x", "::1:80",
        "[]:80", "[::1]", "[localhost]:80", "a b:80", "a/b:80", "a,b:80", "[::1:80", "::1]:80",
        "host:99999999999999999999", "host: 80"}) {
    const auto parsed = ParseHostPort(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status()));
    EXPECT_THAT(std::string(parsed.status().message()), ::testing::HasSubstr("[::1]:50051"));
  }
}

}  // namespace
}  // namespace wan::server
