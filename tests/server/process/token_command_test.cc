#include "server/process/token_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <sstream>
#include <string>
#include <vector>

#include "server/auth/token_file.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/auth/temporary_folder.h"

namespace wan::server {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class TokenCommandTest : public ::testing::Test {
 protected:
  // Returns the exit code; out_ and err_ have what was written.
  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"wanserve", "token"});
    std::vector<const char*> argv;
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    std::ostringstream out;
    std::ostringstream err;
    const int code = RunTokenCommand(static_cast<int>(argv.size()), argv.data(), clock_, out, err);
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  TemporaryFolder folder_;
  std::string file_ = folder_.Path("tokens");
  fakes::FakeClock clock_;
  std::string out_;
  std::string err_;
};

TEST_F(TokenCommandTest, CreatePrintsTheTokenAloneAndKeepsItsHash) {
  ASSERT_EQ(Run({"create", "--file", file_, "--principal", "alice", "--role", "user"}), 0) << err_;
  EXPECT_THAT(out_, MatchesRegex("wan_[0-9a-f]{64}\n"));
  EXPECT_EQ(err_, "");
  const std::string token = out_.substr(0, out_.size() - 1);
  EXPECT_THAT(folder_.Read("tokens"), Not(HasSubstr(token)));
  EXPECT_THAT(folder_.Read("tokens"), HasSubstr("sha256:" + HashOfToken(token)));
  struct stat facts = {};
  ASSERT_EQ(stat(file_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

TEST_F(TokenCommandTest, ListNamesWhoThereIsAndNoToken) {
  Run({"create", "--file", file_, "--principal", "alice", "--role", "viewer"});
  const std::string token = out_.substr(0, out_.size() - 1);
  Run({"create", "--file", file_, "--principal", "ops", "--role", "admin", "--subject", "CN=ops"});
  EXPECT_EQ(out_, "");
  ASSERT_EQ(Run({"list", "--file", file_}), 0) << err_;
  EXPECT_THAT(out_, MatchesRegex("alice viewer [-0-9TZ:]+ [0-9a-f]{12}\nops admin [-0-9TZ:]+ "
                                 "CN=ops\n"));
}

TEST_F(TokenCommandTest, RevokeRemoves) {
  Run({"create", "--file", file_, "--principal", "alice", "--role", "user"});
  EXPECT_EQ(Run({"revoke", "--file", file_, "--principal", "alice"}), 0) << err_;
  EXPECT_EQ(Run({"list", "--file", file_}), 0);
  EXPECT_EQ(out_, "");
  EXPECT_EQ(Run({"revoke", "--file", file_, "--principal", "alice"}), 1);
  EXPECT_THAT(err_, HasSubstr("no such credential of the principal 'alice'"));
}

TEST_F(TokenCommandTest, WrongArgumentsSayWhatWouldBeRight) {
  EXPECT_EQ(Run({}), 2);
  EXPECT_EQ(Run({"create", "--file", file_, "--principal", "a", "--role", "king"}), 2);
  EXPECT_THAT(err_, HasSubstr("--role is 'king', must be viewer, user or admin"));
  EXPECT_EQ(Run({"create", "--file", file_, "--principal", "a b", "--role", "user"}), 2);
  EXPECT_THAT(err_, HasSubstr("--principal is 'a b'"));
  EXPECT_EQ(Run({"create", "--principal", "a", "--role", "user"}), 2);
  EXPECT_THAT(err_, HasSubstr("--file"));
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_EQ(Run({"list", "--file", folder_.Path("none")}), 1);
  EXPECT_THAT(err_, HasSubstr("No such file"));
}

}  // namespace
}  // namespace wan::server
