// Completion as bash does it. zsh and fish read their scripts if they are installed.
#include "client/wanctl/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/client/fakes/temp_folder.h"

namespace wan::client {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// What a program prints on stdout; its exit code must be 0.
std::string OutputOf(const std::string& command) {
  std::FILE* const pipe = popen(command.c_str(), "r");
  std::string output;
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof(buffer), pipe)) output.append(buffer, got);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

class CompletionTest : public testing::Test {
 protected:
  std::string Script(Shell shell) {
    const std::string file = (folder_ / "completion").string();
    fakes::WriteFile(file, CompletionScript(shell, CommandTable()));
    return file;
  }

  // What bash offers for the last word of a command line, which may be empty.
  std::vector<std::string> Offered(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) line += " '" + word + "'";
    fakes::WriteFile(folder_ / "ask", "cd '" + folder_.path().string() + "'; source '" +
                                          Script(Shell::kBash) + "'; COMP_WORDS=(wanctl" + line +
                                          "); COMP_CWORD=" + std::to_string(words.size()) +
                                          "; _wanctl; printf '%s\\n' \"${COMPREPLY[@]}\"\n");
    return absl::StrSplit(OutputOf("bash '" + (folder_ / "ask").string() + "'"), '\n',
                          absl::SkipEmpty());
  }

  const fakes::TempFolder folder_;
};

TEST_F(CompletionTest, CommandsAndFlags) {
  EXPECT_THAT(Offered({"gen"}), UnorderedElementsAre("generate"));
  EXPECT_THAT(Offered({""}), AllOf(Contains("models"), Contains("--server"), Contains("top")));
  EXPECT_THAT(Offered({"models", "un"}), UnorderedElementsAre("unload"));
  EXPECT_THAT(Offered({"generate", "--pro"}),
              UnorderedElementsAre("--prompt", "--prompt-file", "--profile"));
  EXPECT_THAT(Offered({"--server", "gpu:1", "li"}), UnorderedElementsAre("list"));
  // A value that is called like a command is none.
  EXPECT_THAT(Offered({"generate", "--prompt", "list", "--fra"}), UnorderedElementsAre("--frames"));
  EXPECT_THAT(Offered({"help", "down"}), UnorderedElementsAre("download"));
}

TEST_F(CompletionTest, ValuesOfFlags) {
  EXPECT_THAT(Offered({"generate", "--solver", ""}),
              UnorderedElementsAre("unipc", "dpm++", "euler", "lcm"));
  EXPECT_THAT(Offered({"--format", "j"}), UnorderedElementsAre("json"));
  EXPECT_THAT(Offered({"list", "--state", "fa"}), UnorderedElementsAre("failed"));
  EXPECT_THAT(Offered({"completion", "z"}), UnorderedElementsAre("zsh"));
  EXPECT_THAT(Offered({"generate", "--prompt", ""}), IsEmpty()) << "any text";
  fakes::WriteFile(folder_ / "boat.png", "");
  EXPECT_THAT(Offered({"generate", "--image", "bo"}), UnorderedElementsAre("boat.png"));
  EXPECT_THAT(Offered({"generate", "--preview-dir", "bo"}), IsEmpty()) << "folders only";
}

TEST_F(CompletionTest, EveryShellCanReadItsScript) {
  const struct {
    Shell shell;
    const char* program;
    const char* check;
  } table[] = {{Shell::kBash, "bash", "bash -n"},
               {Shell::kZsh, "zsh", "zsh -n"},
               {Shell::kFish, "fish", "fish --no-execute"}};
  for (const auto& row : table) {
    const std::string script = CompletionScript(row.shell, CommandTable());
    EXPECT_THAT(script, AllOf(HasSubstr("wanctl"), HasSubstr("generate"), HasSubstr("warmup")));
    const std::string find = std::string("command -v ") + row.program + " >/dev/null";
    if (std::system(find.c_str()) != 0) continue;
    EXPECT_EQ(OutputOf(std::string(row.check) + " '" + Script(row.shell) + "' 2>&1"), "");
  }
}

}  // namespace
}  // namespace wan::client
