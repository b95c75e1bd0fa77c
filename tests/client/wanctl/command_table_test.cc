// What is read from the one registration of commands: help, suggestions, and the check of the
// manual.
#include "client/wanctl/command_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/wanctl/command_line.h"
#include "client/wanctl/foreign_flags.h"
#include "client/wanctl/suggestion.h"

namespace wan::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Args = std::vector<std::string>;

EarlyExit Ended(const Args& args) {
  auto parsed = ParseCommandLine(args, "localhost:50051");
  const auto* exit = std::get_if<EarlyExit>(&parsed);
  EXPECT_NE(exit, nullptr) << ::testing::PrintToString(args) << " is a good command line";
  return exit == nullptr ? EarlyExit() : *exit;
}

const CommandEntry& Find(const std::vector<CommandEntry>& commands, const std::string& name) {
  for (const CommandEntry& command : commands) {
    if (command.name == name) return command;
  }
  static const CommandEntry none;
  ADD_FAILURE() << "no command " << name;
  return none;
}

const FlagEntry& Find(const std::vector<FlagEntry>& flags, const std::string& name) {
  for (const FlagEntry& flag : flags) {
    if (flag.name == name) return flag;
  }
  static const FlagEntry none;
  ADD_FAILURE() << "no flag " << name;
  return none;
}

TEST(CommandTableTest, NamesCommandsFlagsAndTheirValues) {
  const CommandEntry root = CommandTable();
  EXPECT_EQ(root.name, "wanctl");
  const CommandEntry& generate = Find(root.commands, "generate");
  EXPECT_EQ(generate.description, "Make a video and wait for it");
  EXPECT_EQ(Find(generate.flags, "--prompt").value, "TEXT");
  EXPECT_TRUE(Find(generate.flags, "--prompt").choices.empty());
  EXPECT_THAT(Find(generate.flags, "--solver").choices,
              ElementsAre("unipc", "dpm++", "euler", "lcm"));
  EXPECT_TRUE(Find(generate.flags, "--guidance").choices.empty()) << "G|LOW,HIGH are no words";
  EXPECT_EQ(Find(generate.flags, "--exact-size").value, "");
  EXPECT_FALSE(Find(generate.flags, "--exact-size").positional());
  EXPECT_TRUE(Find(Find(root.commands, "watch").flags, "JOB").positional());
  Find(Find(root.commands, "models").commands, "load");
}

TEST(CommandTableTest, HelpOfACommandIsItsHelp) {
  EXPECT_EQ(Ended({"help"}).out, Ended({"--help"}).out);
  EXPECT_EQ(Ended({"help", "generate"}).out, Ended({"generate", "--help"}).out);
  EXPECT_EQ(Ended({"help", "models", "load"}).out, Ended({"models", "load", "--help"}).out);
  EXPECT_THAT(Ended({"help", "help"}).out, HasSubstr("COMMAND"));
  const EarlyExit wrong = Ended({"help", "models", "lod"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, StartsWith("wanctl: unknown command models lod; did you mean load?\n"));
  EXPECT_THAT(wrong.err, HasSubstr("\n'wanctl --help' lists the commands, "));
  EXPECT_THAT(Ended({"models", "lod"}).err,
              testing::EndsWith("\n'wanctl models --help' says what it takes.\n"));
}

TEST(CommandTableTest, MisspeltWordsAreGuessed) {
  const struct {
    Args args;
    std::string says;
  } table[] = {
      {{"genrate", "--prompt", "a"}, "unknown command genrate; did you mean generate?"},
      {{"lsit"}, "unknown command lsit; did you mean list?"},
      {{"down"}, "unknown command down; did you mean download?"},
      {{"models", "unlaod", "m"}, "unknown command models unlaod; did you mean unload?"},
      // The flag is why --prompt is missing, so it is what is said.
      {{"generate", "--promt", "a", "--model", "m", "--output", "a.mp4"},
       "generate has no flag --promt; did you mean --prompt?"},
      {{"generate", "--promt=a", "--model", "m"}, "generate has no flag --promt; did you mean"},
      {{"list", "--jsno"}, "list has no flag --jsno; did you mean --json?"},
      {{"--sever", "gpu:1", "list"}, "has no flag --sever; did you mean --server?"},
      // Another program's.
      {{"generate", "--prompt", "a", "--frame_num", "121"},
       "generate has no flag --frame_num; generate.py's --frame_num is --frames here"},
      {{"generate", "--prompt", "a", "--ckpt_dir=/m"},
       "belongs to the server: wanserve --model NAME=FOLDER"},
      {{"generate", "--prompt", "a", "--num-inference-steps", "40"},
       "diffusers' --num_inference_steps is --steps here"},
      // Right, but elsewhere.
      {{"submit", "--model", "m", "--prompt", "a", "--output", "a.mp4"},
       "submit has no flag --output; generate has it"},
      {{"watch", "a", "b"}, "watch does not expect 'b'"},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(::testing::PrintToString(row.args));
    const EarlyExit exit = Ended(row.args);
    EXPECT_EQ(exit.code, 2);
    EXPECT_THAT(exit.err, HasSubstr("wanctl: "));
    EXPECT_THAT(exit.err, HasSubstr(row.says));
  }
  for (const Args& args : {Args{"frobnicate"}, Args{"x"}, Args{"list", "--nonsense"}}) {
    EXPECT_THAT(Ended(args).err, Not(HasSubstr("did you mean")));
  }
}

TEST(SuggestionTest, TakesTheNearestName) {
  const std::vector<std::string> names = {"get", "list", "delete", "--steps", "--server"};
  EXPECT_EQ(DidYouMean("delte", names), "; did you mean delete?");
  EXPECT_EQ(DidYouMean("lits", names), "; did you mean list?") << "swapped letters are one mistake";
  EXPECT_EQ(DidYouMean("-steps", names), "; did you mean --steps?");
  EXPECT_EQ(DidYouMean("--ser", names), "; did you mean --server?") << "the beginning is enough";
  EXPECT_EQ(DidYouMean("got", names), "; did you mean get?");
  EXPECT_EQ(DidYouMean("go", names), "") << "as far from get as from anything";
  EXPECT_EQ(DidYouMean("", names), "");
  EXPECT_EQ(DidYouMean("--", names), "");
  EXPECT_EQ(DidYouMean(std::string(100000, 'l'), names), "");
}

// Every command and flag of `command` and of those below it.
void Collect(const CommandEntry& command, std::set<std::string>& flags,
             std::set<std::string>& commands) {
  commands.insert(command.name);
  for (const FlagEntry& flag : command.flags) {
    if (!flag.positional()) flags.insert(flag.name);
  }
  for (const CommandEntry& below : command.commands) Collect(below, flags, commands);
}

// The words of the text that begin with two dashes, of flags of wanctl and of other programs.
std::set<std::string> FlagsIn(const std::string& text) {
  std::set<std::string> flags;
  for (size_t at = text.find("--"); at != std::string::npos; at = text.find("--", at)) {
    const size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-", at);
    std::string word = text.substr(at, end - at);
    at += word.size();
    // Lines of tables are made of dashes.
    if (word.find_first_not_of('-') == 2) flags.insert(std::move(word));
  }
  return flags;
}

// docs/use/wanctl.md names every command and flag, and no flag that does not exist.
TEST(CommandTableTest, TheManualHasEveryCommandAndFlag) {
  std::ifstream file(WAN_MANUAL_PAGE);
  const std::string page(std::istreambuf_iterator<char>(file), {});
  ASSERT_FALSE(page.empty());
  std::set<std::string> flags, commands;
  Collect(CommandTable(), flags, commands);
  const std::set<std::string> named = FlagsIn(page);
  for (const std::string& flag : flags) {
    EXPECT_TRUE(named.contains(flag)) << "docs/use/wanctl.md does not name " << flag;
  }
  for (const std::string& flag : named) {
    EXPECT_TRUE(flags.contains(flag)) << "docs/use/wanctl.md names " << flag;
  }
  for (const std::string& command : commands) {
    const bool has = page.find("`" + command) != std::string::npos ||
                     page.find(" " + command + " ") != std::string::npos;
    EXPECT_TRUE(has) << "docs/use/wanctl.md does not name the command " << command;
  }
}

// docs/use/coming-from.md has every flag of other programs that wanctl answers, and wanctl answers
// every flag of generate.py that the page has.
TEST(CommandTableTest, ThePageOfOtherProgramsHasEveryFlagThatIsAnswered) {
  std::ifstream file(WAN_FOREIGN_PAGE);
  const std::string page(std::istreambuf_iterator<char>(file), {});
  ASSERT_FALSE(page.empty());
  for (const std::string_view flag : ForeignFlags()) {
    EXPECT_THAT(page, HasSubstr(std::string(flag)));
  }
  // The first column of the tables of programs that have flags.
  for (size_t row = page.find("\n| `--"); row != std::string::npos;
       row = page.find("\n| `--", row + 1)) {
    const size_t begin = row + 4;
    const std::string flag = page.substr(begin, page.find_first_of("` ", begin) - begin);
    const std::set<std::string> same = {"--prompt", "--size", "--audio"};
    EXPECT_TRUE(same.contains(flag) || !HintForForeignFlag(flag).empty()) << flag;
  }
}

}  // namespace
}  // namespace wan::client
