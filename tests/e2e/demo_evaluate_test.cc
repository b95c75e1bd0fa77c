// demo_evaluate against the real server: many jobs in its queue, killed and started again. The
// model is the tiny one with random weights, so the videos show noise; what counts is that every
// scene has its video, and one job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/e2e/test_server.h"

namespace wan::e2e {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int kScenes = 12;  // half with one object, half with two

class DemoEvaluateTest : public testing::Test {
 protected:
  DemoEvaluateTest() {
    std::ifstream all(WAN_DEMO_SCENES);
    std::vector<std::string> lines;
    for (std::string line; std::getline(all, line);) lines.push_back(line);
    EXPECT_THAT(lines, SizeIs(200));
    std::ofstream some(folder_.File("scenes.jsonl"));
    for (int i = 0; i < kScenes / 2; ++i) some << lines[i] << "\n" << lines[199 - i] << "\n";
  }

  std::vector<std::string> RunCommand(const std::string& output) const {
    return {std::string(WAN_BINARY_DIR) + "/demo_evaluate",
            "run",
            "--server",
            server_.grpc_address(),
            "--model",
            "tiny",
            "--scenes",
            folder_.File("scenes.jsonl"),
            "--images",
            WAN_DEMO_FIRST_FRAMES,
            "--mode",
            "both",
            "--size",
            "64x64",
            "--frames",
            "5",
            "--steps",
            "1",
            "--output",
            folder_.File(output)};
  }

  Json Report(const std::string& output) const {
    return Json::parse(ReadWholeFile(folder_.File(output) + "/report.json"));
  }

  // Of the whole server.
  int Jobs() {
    wan::v1::ListJobsRequest request;
    request.set_page_size(1000);
    wan::v1::ListJobsResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(server_.videos().ListJobs(&context, request, &response).ok());
    return response.jobs_size();
  }

  TemporaryFolder folder_;
  TestServer server_{{.data_dir = folder_.path(), .flags = {"--queue-capacity", "5"}}};
};

TEST_F(DemoEvaluateTest, AKilledRunGoesOn) {
  // Progress is on stderr, which only a shell can give us line by line.
  std::vector<std::string> command = {"sh", "-c", "exec \"$0\" \"$@\" 2>&1"};
  for (const std::string& word : RunCommand("run")) command.push_back(word);
  Process first(command, folder_.File("first.log"));
  std::string line;
  do {
    line = first.ReadLine();
    ASSERT_NE(line, "") << "it ended before it was killed";
  } while (line.rfind("5 of 24", 0) != 0);
  first.Signal(SIGKILL);
  EXPECT_EQ(first.Wait(), 128 + SIGKILL);

  const ProcessResult second = RunProcess(RunCommand("run"));
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr(" of 24 videos are there already"));
  EXPECT_THAT(second.out, HasSubstr("| videos | 24 (and 0 not made) |"));
  EXPECT_EQ(Jobs(), 24);

  const Json report = Report("run");
  EXPECT_EQ(report["text"]["one"]["colour"]["of"], kScenes / 2);
  EXPECT_EQ(report["image"]["two"]["colour"]["of"], kScenes);
  EXPECT_EQ(report["resolved"]["frames"], 5);
  EXPECT_GT(report["load"]["videos_per_minute"].get<double>(), 0);
  std::set<std::string> jobs;
  for (const Json& clip : report["clips"]) {
    jobs.insert(clip["job"].get<std::string>());
    EXPECT_GE(clip["queue_seconds"].get<double>(), 0) << clip;
    EXPECT_GT(clip["job_seconds"].get<double>(), 0) << clip;
    EXPECT_EQ(clip.contains("first_frame_psnr"), clip["mode"] == "image");
  }
  EXPECT_THAT(jobs, SizeIs(24));

  const ProcessResult again = RunProcess(RunCommand("run"));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Report("run"), report);
  EXPECT_EQ(Jobs(), 24);
}

TEST_F(DemoEvaluateTest, TheSameSeedsMakeTheSameVideos) {
  ASSERT_EQ(RunProcess(RunCommand("a")).exit_code, 0);
  ASSERT_EQ(RunProcess(RunCommand("b")).exit_code, 0);
  const ProcessResult compared =
      RunProcess({RunCommand("a")[0], "compare", folder_.File("a") + "/report.json",
                  folder_.File("b") + "/report.json"});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("No clip is judged otherwise."));
  // With the first frames' levels, which every changed pixel would move.
  EXPECT_EQ(Report("a")["image"], Report("b")["image"]);
}

TEST_F(DemoEvaluateTest, TheServersRefusalIsShown) {
  std::vector<std::string> command = RunCommand("run");
  command.insert(command.end(), {"--shift", "1000"});
  const ProcessResult refused = RunProcess(command);
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("shift"));
}

}  // namespace
}  // namespace wan::e2e
