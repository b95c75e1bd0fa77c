#include "server/process/first_start.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "server/process/command_line.h"

namespace wan::server {
namespace {

TEST(FirstStartTest, JobsAreInTheUsersDataFolder) {
  setenv("HOME", "/home/ada", 1);
  setenv("XDG_DATA_HOME", "/data", 1);
  EXPECT_EQ(DefaultDataDir(), "/data/wanserve");
  setenv("XDG_DATA_HOME", "relative", 1);
  EXPECT_EQ(DefaultDataDir(), "/home/ada/.local/share/wanserve");
  unsetenv("XDG_DATA_HOME");
  EXPECT_EQ(DefaultDataDir(), "/home/ada/.local/share/wanserve");
  unsetenv("HOME");
  EXPECT_EQ(DefaultDataDir(), "");
  const char* const program = "wanserve";
  EXPECT_NE(std::string(ParseCommandLine(1, &program).status().message()).find("--data-dir DIR"),
            std::string::npos);
}

TEST(FirstStartTest, SaysWhatToTypeAndWhichPageToOpen) {
  EXPECT_EQ(NextSteps({.grpc = {"127.0.0.1", 50051}}, "wanserve"),
            "make a video: wanctl generate \"A red circle moves to the right.\"\n");
  EXPECT_EQ(NextSteps({.grpc = {"0.0.0.0", 50052},
                       .http = HostPort{"127.0.0.1", 8000},
                       .http_page = true,
                       .tls = true},
                      "build/bin/wanserve"),
            "make a video: build/bin/wanctl --server localhost:50052 --tls-ca FILE generate \"A "
            "red circle "
            "moves to the right.\"\nor in a browser: https://localhost:8000\n");
  EXPECT_EQ(
      NextSteps({.grpc = {"10.0.0.2", 50051}, .http = HostPort{"127.0.0.1", 8000}}, "/wanserve"),
      "make a video: /wanctl --server 10.0.0.2:50051 generate \"A red circle moves to the "
      "right.\"\n");
}

}  // namespace
}  // namespace wan::server
