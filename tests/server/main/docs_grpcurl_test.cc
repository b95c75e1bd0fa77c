// Runs every line of the documentation that calls grpcurl, against a server with a fake engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "tests/e2e/process.h"

namespace wan::server {
namespace {

using e2e::Process;
using e2e::ProcessResult;
using e2e::RunProcess;
using e2e::TemporaryFolder;
using ::testing::HasSubstr;

struct Line {
  std::string page;
  std::string command;
};

// The commands of a page, each with the lines that continue it.
void AddLines(const std::filesystem::path& page, std::vector<Line>& lines) {
  std::ifstream file(page);
  std::string command;
  for (std::string line; std::getline(file, line);) {
    if (command.empty() && line.rfind("grpcurl ", 0) != 0) continue;
    command += line;
    if (command.back() == '\\') {
      command.back() = ' ';
      continue;
    }
    lines.push_back({page.filename().string(), std::exchange(command, std::string())});
  }
}

std::vector<Line> DocumentedLines() {
  const std::filesystem::path root = WAN_SOURCE_DIR;
  std::vector<Line> lines;
  AddLines(root / "README.md", lines);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md") AddLines(entry.path(), lines);
  }
  return lines;
}

// The text between the two, which surround it first.
std::string Between(const std::string& text, const std::string& before, const std::string& after) {
  const size_t begin = text.find(before);
  if (begin == std::string::npos) return "";
  const size_t end = text.find(after, begin + before.size());
  return text.substr(begin + before.size(), end - begin - before.size());
}

class DocsGrpcurlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string(WAN_GRPCURL).find("NOTFOUND") != std::string::npos) {
      GTEST_SKIP() << "grpcurl is not installed; scripts/setup fetches it";
    }
    // The models that the pages name.
    server_ = std::make_unique<Process>(
        std::vector<std::string>{WAN_FAKE_SERVER, "--listen", "127.0.0.1:0", "--metrics-listen",
                                 "127.0.0.1:0", "--http-listen", "none", "--data-dir",
                                 folder_.File("data"), "--model", "ti2v-5b=synthetic:ti2v-5b",
                                 "--model", "a14b=synthetic:ti2v-5b"},
        folder_.File("log"));
    address_ = Between(server_->ReadLine(), "\"grpc\":\"", "\"");
    ASSERT_NE(address_, "") << e2e::ReadWholeFile(folder_.File("log"));
    while (Run("grpcurl -plaintext localhost:50051 grpc.health.v1.Health/Check")
               .out.find("\"SERVING\"") == std::string::npos) {
    }
  }

  // A documented command with this server's address and the last job's name.
  ProcessResult Run(const std::string& command) {
    const ProcessResult result =
        RunProcess({"sh", "-c",
                    absl::StrReplaceAll(command, {{"localhost:50051", address_},
                                                  {"grpcurl ", std::string(WAN_GRPCURL) + " "},
                                                  {"jobs/ID", job_}})});
    const std::string id = Between(result.out, "\"name\": \"jobs/", "\"");
    if (!id.empty()) job_ = "jobs/" + id;
    return result;
  }

  const TemporaryFolder folder_;
  std::unique_ptr<Process> server_;
  std::string address_;
  std::string job_;
};

TEST_F(DocsGrpcurlTest, EveryLineOfTheDocumentationWorks) {
  // A job for the lines that name one.
  ASSERT_EQ(Run("grpcurl -plaintext -d '{\"request\": {\"model\": \"a14b\", \"prompt\": \"x\"}}' "
                "localhost:50051 wan.v1.VideoGeneration/CreateJob")
                .exit_code,
            0);
  ASSERT_NE(job_, "");
  const std::vector<Line> lines = DocumentedLines();
  EXPECT_GE(lines.size(), 5u);
  for (const Line& line : lines) {
    const ProcessResult result = Run(line.command);
    EXPECT_EQ(result.exit_code, 0) << line.page << ": " << line.command << "\n" << result.err;
  }
}

TEST_F(DocsGrpcurlTest, EveryListedServiceIsDescribed) {
  const ProcessResult list = RunProcess({WAN_GRPCURL, "-plaintext", address_, "list"});
  ASSERT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("grpc.health.v1.Health\n"));
  std::istringstream names(list.out);
  for (std::string name; std::getline(names, name);) {
    const ProcessResult described =
        RunProcess({WAN_GRPCURL, "-plaintext", address_, "describe", name});
    EXPECT_EQ(described.exit_code, 0) << name << ": " << described.err;
    EXPECT_THAT(described.out, HasSubstr(name + " is a service"));
  }
}

}  // namespace
}  // namespace wan::server
