// Every command line of wanctl in the documentation is one that wanctl accepts.
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/wanctl/command_line.h"

namespace wan::client {
namespace {

using Words = std::vector<std::string>;

// Splits a line of a shell into the words of its commands. A command ends with an operator or the
// line, and a comment is left out.
std::vector<Words> CommandsOf(const std::string& line) {
  std::vector<Words> commands(1);
  std::string word;
  bool in_word = false;
  char quote = 0;
  const auto end_word = [&] {
    if (in_word) commands.back().push_back(std::exchange(word, ""));
    in_word = false;
  };
  for (const char c : line) {
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      in_word = true;
    } else if (c == '#' && !in_word) {
      break;
    } else if (std::string("&|;()<>").find(c) != std::string::npos) {
      end_word();
      commands.emplace_back();
    } else if (c == ' ') {
      end_word();
    } else {
      word += c;
      in_word = true;
    }
  }
  end_word();
  return commands;
}

// Returns the lines of the page's programs of the shell.
std::vector<std::string> ShellLinesOf(const std::filesystem::path& page) {
  std::ifstream file(page);
  std::vector<std::string> lines;
  bool in_shell = false;
  std::string whole;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      in_shell = line == "```sh";
      continue;
    }
    if (!in_shell) continue;
    whole += line;
    if (whole.ends_with('\\')) {
      whole.back() = ' ';
    } else {
      lines.push_back(std::exchange(whole, ""));
    }
  }
  return lines;
}

TEST(DocsLinesTest, WanctlAcceptsEveryLineOfTheDocumentation) {
  std::vector<std::filesystem::path> pages = {std::filesystem::path(WAN_SOURCE_DIR) / "README.md"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           std::filesystem::path(WAN_SOURCE_DIR) / "docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  int seen = 0;
  for (const std::filesystem::path& page : pages) {
    for (const std::string& line : ShellLinesOf(page)) {
      for (const Words& command : CommandsOf(line)) {
        // It may stand after a keyword of the shell.
        for (size_t at = 0; at < command.size() && at < 2; ++at) {
          if (std::filesystem::path(command[at]).filename() != "wanctl") continue;
          const auto parsed = ParseCommandLine(
              {command.begin() + static_cast<std::ptrdiff_t>(at) + 1, command.end()},
              "localhost:50051");
          const auto* const exit = std::get_if<EarlyExit>(&parsed);
          EXPECT_EQ(exit, nullptr) << page << ": " << line << "\n" << exit->err;
          ++seen;
        }
      }
    }
  }
  EXPECT_GE(seen, 20);
}

}  // namespace
}  // namespace wan::client
