// Many videos of one command line: files of requests, --count, and jobs called `last`.
#include "client/wanctl/batch.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/wanctl/defaults.h"
#include "client/wanctl/outputs.h"
#include "google/rpc/error_details.pb.h"
#include "tests/client/wanctl/wanctl_fixture.h"

namespace wan::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Request = wan::v1::GenerationRequest;

class BatchTest : public WanctlTest {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }

  // The requests of a file, each as text, on top of one with 30 steps.
  std::vector<std::string> Read(const std::string& name, const std::string& text, int count = 1) {
    Request base;
    base.set_steps(30);
    const auto rows = ReadBatch(Write(name, text), {base, std::nullopt}, count);
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<std::string> texts;
    if (!rows.ok()) return texts;
    for (const BatchRow& row : *rows) texts.push_back(row.request.ShortDebugString());
    return texts;
  }

  std::string ErrorOf(const std::string& name, const std::string& text) {
    const auto requests = ReadBatch(Write(name, text), {}, 1);
    EXPECT_FALSE(requests.ok());
    return std::string(requests.status().message());
  }

  // Accepts batches, and counts the jobs from 1.
  void AcceptBatches() {
    server_.scripts.submit_batch = [this](const wan::v1::SubmitBatchRequest& request,
                                          wan::v1::SubmitBatchResponse* answer) {
      return Accept(request, answer);
    };
  }
  grpc::Status Accept(const wan::v1::SubmitBatchRequest& request,
                      wan::v1::SubmitBatchResponse* answer) {
    batches_.Add(request);
    for (int i = 0; i < request.requests_size(); ++i) {
      answer->add_jobs()->set_name(absl::StrCat("jobs/a", ++jobs_));
    }
    return grpc::Status::OK;
  }

  fakes::Requests<wan::v1::SubmitBatchRequest> batches_;
  int jobs_ = 0;
};

TEST_F(BatchTest, ALineOfTextIsAPrompt) {
  EXPECT_THAT(
      Read("a.txt", "a cat\n\n  a \"dog\", running \r\n"),
      ElementsAre("prompt: \"a cat\" steps: 30", "prompt: \"a \\\"dog\\\", running\" steps: 30"));
}

TEST_F(BatchTest, ALineOfJsonHasFields) {
  EXPECT_THAT(Read("a.jsonl",
                   "{\"prompt\": \"a cat\", \"steps\": 4, \"size\": \"64x32\"}\n"
                   "{\"prompt\": \"a dog\", \"guidance\": 5.5}\n"),
              ElementsAre("prompt: \"a cat\" width: 64 height: 32 steps: 4",
                          "prompt: \"a dog\" steps: 30 guidance_scale: 5.5"));
}

TEST_F(BatchTest, ARowHasFieldsAndMayHaveQuotes) {
  EXPECT_THAT(
      Read("a.csv", "prompt,steps\r\n\"a \"\"red\"\", fast\ncat\",4\r\na dog,\r\n"),
      ElementsAre("prompt: \"a \\\"red\\\", fast\\ncat\" steps: 4", "prompt: \"a dog\" steps: 30"));
}

TEST_F(BatchTest, FilesOfSpreadsheetsAndListsOfNumbersAreRead) {
  EXPECT_THAT(Read("a.csv", "\xef\xbb\xbfprompt\r\na cat\r\n"),
              ElementsAre("prompt: \"a cat\" steps: 30"));
  EXPECT_THAT(Read("a.jsonl", "{\"prompt\": \"a\", \"guidance\": [3, 4], \"shift\": null}"),
              ElementsAre("prompt: \"a\" steps: 30 guidance_scale: 3 guidance_scale: 4"));
}

TEST_F(BatchTest, EachOfManyHasItsSeed) {
  EXPECT_THAT(Read("a.jsonl", "{\"prompt\": \"a\", \"seed\": 7}\n{\"prompt\": \"b\"}\n", 2),
              ElementsAre("prompt: \"a\" steps: 30 seed: 7", "prompt: \"a\" steps: 30 seed: 8",
                          "prompt: \"b\" steps: 30", "prompt: \"b\" steps: 30"));
}

TEST_F(BatchTest, ErrorsNameTheLine) {
  EXPECT_THAT(ErrorOf("a.jsonl", "{\"prompt\": \"a\"}\nprompt\n"),
              HasSubstr("a.jsonl, line 2 is not a JSON object; must be like {"));
  EXPECT_THAT(ErrorOf("a.jsonl", "\n{\"prompt\": \"a\", \"steps\": \"x\"}\n"),
              HasSubstr("line 2 steps expects a whole number, not 'x'"));
  EXPECT_THAT(ErrorOf("a.jsonl", "{\"steps\": 4}"), HasSubstr("line 1 has no prompt"));
  EXPECT_THAT(ErrorOf("a.csv", "prompt,stepps\na,4\n"),
              HasSubstr("line 1 stepps is not a field; must be one of background, "));
  EXPECT_THAT(ErrorOf("a.csv", "prompt,steps\na\n"),
              HasSubstr("line 2 has 1 values; must have 2, as the first line has names"));
  EXPECT_THAT(ErrorOf("a.csv", "prompt,steps\n\"a,4\n"),
              HasSubstr("line 2 has a quote without its end"));
  EXPECT_THAT(ErrorOf("a.csv", ""), HasSubstr("is empty; must begin with the fields' names"));
  EXPECT_THAT(ErrorOf("a.txt", "\n"), HasSubstr("has no request"));
  EXPECT_THAT(std::string(ReadBatch("/nowhere/a.txt", {}, 1).status().message()),
              HasSubstr("--from: /nowhere/a.txt cannot be read: No such file"));
}

TEST_F(BatchTest, SubmitSendsAHundredAtATime) {
  AcceptBatches();
  const std::string file = Write("a.txt", "a cat\na dog\n");
  EXPECT_EQ(Run({"submit", "--model", "5b", "--from", file, "--count", "51", "--request-id", "r"}),
            0);
  ASSERT_EQ(batches_.All().size(), 2u);
  EXPECT_EQ(batches_.All()[0].requests_size(), 100);
  EXPECT_EQ(batches_.All()[1].requests_size(), 2);
  EXPECT_EQ(batches_.All()[1].requests(1).request_id(), "r-102");
  EXPECT_EQ(batches_.All()[1].requests(1).model(), "5b");
  EXPECT_THAT(out_, HasSubstr("jobs/a1\njobs/a2\n"));
  EXPECT_THAT(out_, HasSubstr("jobs/a102\n"));
}

// A row of its own model or length is not that of the flags.
TEST_F(BatchTest, RowsDecideModelAndLength) {
  AcceptBatches();
  server_.scripts.list_models = [](const auto&, wan::v1::ListModelsResponse* answer) {
    answer->add_models()->set_name("models/5b");
    return grpc::Status::OK;
  };
  int asked = 0;
  server_.scripts.get_model = [&](const auto& request, wan::v1::Model* answer) {
    ++asked;
    answer->set_name(request.name());
    answer->mutable_defaults()->set_fps(request.name().ends_with("14b") ? 16 : 24);
    answer->set_temporal_stride(4);
    return grpc::Status::OK;
  };
  const std::string file = Write("a.csv",
                                 "prompt,model,seconds,frames,fps\n"
                                 "a,14b,,,\n"
                                 "b,,,,\n"
                                 "c,,1,,\n"
                                 "d,,,9,\n"
                                 "e,14b,1,,8\n");
  EXPECT_EQ(Run({"submit", "--from", file, "--seconds", "2"}), 0) << err_;
  ASSERT_EQ(batches_.All().size(), 1u);
  std::vector<std::string> texts;
  const wan::v1::SubmitBatchRequest sent = batches_.All()[0];
  for (const Request& request : sent.requests()) {
    texts.push_back(
        absl::StrCat(request.prompt(), " ", request.model(), " ", request.num_frames()));
  }
  EXPECT_THAT(texts, ElementsAre("a 14b 33", "b 5b 49", "c 5b 25", "d 5b 9", "e 14b 9"));
  EXPECT_EQ(asked, 2) << "once for each model";
  EXPECT_THAT(ErrorOf("b.jsonl", "{\"prompt\": \"a\", \"frames\": 9, \"seconds\": 2}"),
              HasSubstr("line 1 has frames and seconds; must have one of them"));
}

TEST_F(BatchTest, CallsStayBelowTheLimitOfAMessage) {
  AcceptBatches();
  const std::string image = Write("a.png", std::string(size_t{30} << 20, 'i'));
  EXPECT_EQ(
      Run({"submit", "--model", "5b", "--from", Write("a.txt", "a\nb\nc\n"), "--image", image}), 0)
      << err_;
  std::vector<std::string> prompts;
  for (const auto& batch : batches_.All()) {
    std::string all;
    for (const Request& request : batch.requests()) {
      all += request.prompt();
      EXPECT_EQ(request.image().size(), size_t{30} << 20);
    }
    prompts.push_back(all);
  }
  EXPECT_THAT(prompts, ElementsAre("ab", "c"));
  EXPECT_EQ(out_, "jobs/a1\njobs/a2\njobs/a3\n");
  // Texts have a limit of their own, and one request always goes out.
  Request longest;
  longest.set_prompt(std::string(size_t{64} << 10, 'p'));
  EXPECT_EQ(FitIntoBatch(std::vector(100, longest), 0), 6u);
  EXPECT_EQ(FitIntoBatch(std::vector(2, longest), size_t{65} << 20), 1u);
  EXPECT_EQ(FitIntoBatch(std::vector(200, Request()), 0), 100u);
}

TEST_F(BatchTest, ABatchThatIsTooLargeForTheServerIsHalved) {
  server_.scripts.submit_batch = [&](const wan::v1::SubmitBatchRequest& request,
                                     wan::v1::SubmitBatchResponse* answer) {
    if (request.requests_size() <= 2) return Accept(request, answer);
    google::rpc::BadRequest details;
    details.add_field_violations()->set_field("requests");
    return fakes::ErrorWith(grpc::StatusCode::INVALID_ARGUMENT, "requests: is too large",
                            {&details});
  };
  EXPECT_EQ(Run({"submit", "--model", "5b", "--from", Write("a.txt", "a\nb\nc\nd\ne\n"),
                 "--latents", "jobs/x", "--strength", "0.5"}),
            0)
      << err_;
  EXPECT_EQ(out_, "jobs/a1\njobs/a2\njobs/a3\njobs/a4\njobs/a5\n");
}

TEST_F(BatchTest, ABatchWaitsForABusyServer) {
  int calls = 0;
  server_.scripts.submit_batch = [&](const wan::v1::SubmitBatchRequest& request,
                                     wan::v1::SubmitBatchResponse* answer) {
    if (++calls == 3) return Accept(request, answer);
    google::rpc::ErrorInfo info;
    info.set_reason("SERVER_BUSY");
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(1);
    return fakes::ErrorWith(grpc::StatusCode::RESOURCE_EXHAUSTED, "no room for latents",
                            {&info, &retry});
  };
  EXPECT_EQ(Run({"submit", "--model", "5b", "--from", Write("a.txt", "a\nb\n")}), 0) << err_;
  EXPECT_EQ(out_, "jobs/a1\njobs/a2\n");
  EXPECT_EQ(calls, 3);
}

TEST_F(BatchTest, AFailureSaysWhatWasAcceptedAndHowToGoOn) {
  server_.scripts.submit_batch = [&](const wan::v1::SubmitBatchRequest& request,
                                     wan::v1::SubmitBatchResponse* answer) {
    if (request.requests(0).prompt() == "0") return Accept(request, answer);
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the queue is full");
  };
  std::string prompts;
  for (int i = 0; i < 150; ++i) absl::StrAppend(&prompts, i, "\n");
  EXPECT_EQ(Run({"submit", "--model", "5b", "--from", Write("a.txt", prompts)}), 3);
  ASSERT_EQ(batches_.All().size(), 1u);
  const std::string first = batches_.All()[0].requests(0).request_id();
  EXPECT_THAT(first, ::testing::MatchesRegex("submit-[0-9a-f]{32}-1"));
  EXPECT_THAT(err_, HasSubstr(absl::StrCat(
                        "the first 100 of 150 requests are jobs; the same command "
                        "with --request-id ",
                        first.substr(0, first.size() - 2), " makes only those that are missing")));
}

TEST_F(BatchTest, PreviewsOfSeveralVideosHaveTheirNumber) {
  const std::string folder = folder_.path().string();
  Script(
      {fakes::Preview(10, "j"), CompletedWith(1, {Serve(wan::v1::OUTPUT_KIND_MP4, "v.mp4", "v")})});
  EXPECT_EQ(Generate({"--count", "2", "--seed", "7", "--preview-interval", "10", "--preview-dir",
                      folder}),
            0)
      << err_;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "1-step-0010.jpg"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "2-step-0010.jpg"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "step-0010.jpg"));
}

TEST_F(BatchTest, AWrongFileMakesNoJob) {
  AcceptBatches();
  EXPECT_EQ(Run({"submit", "--model", "5b", "--from", Write("a.csv", "prompt,seed\na,-1\n")}), 2);
  EXPECT_THAT(err_, HasSubstr("line 2 seed expects a whole number from 0"));
  EXPECT_TRUE(batches_.All().empty());
}

TEST_F(BatchTest, SeveralVideosHaveNumberedFiles) {
  const std::vector<OutputFile> files = {{wan::v1::OUTPUT_KIND_MP4, "d/a.b.mp4"}};
  EXPECT_EQ(NumberedOutputs(files, 1)[0].path, "d/a.b-2.mp4");
}

TEST_F(BatchTest, LastIsTheNewestJob) {
  server_.scripts.list_jobs = [](const auto& request, wan::v1::ListJobsResponse* answer) {
    EXPECT_EQ(request.page_size(), 1);
    answer->add_jobs()->set_name("jobs/newest");
    return grpc::Status::OK;
  };
  server_.scripts.get_job = [](const auto& request, wan::v1::Job* answer) {
    answer->set_name(request.name());
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"get", "last"}), 0);
  EXPECT_THAT(out_, HasSubstr("jobs/newest"));
  std::string latents;
  server_.scripts.create_job = [&](const auto& request, wan::v1::Job* answer) {
    latents = request.request().latents().job();
    answer->set_name("jobs/a1");
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"submit", "--model", "5b", "--latents", "last", "--steps", "0"}), 0);
  EXPECT_EQ(latents, "jobs/newest");
  server_.scripts.list_jobs = [](const auto&, auto*) { return grpc::Status::OK; };
  EXPECT_EQ(Run({"get", "last"}), 3);
  EXPECT_EQ(err_, "wanctl: there is no last job; 'wanctl submit' makes one\n");
}

TEST_F(BatchTest, SecondsBecomeFramesAtTheModelsRate) {
  EXPECT_EQ(FramesOf(5, 24, 4), 121);
  EXPECT_EQ(FramesOf(5.1, 24, 4), 125) << "from the first frame to the last";
  EXPECT_EQ(FramesOf(5, 16, 4), 81);
  EXPECT_EQ(FramesOf(0.001, 16, 4), 1);
  int frames = 0;
  server_.scripts.get_model = [](const auto& request, wan::v1::Model* answer) {
    answer->set_name(request.name());
    answer->mutable_defaults()->set_fps(24);
    answer->set_temporal_stride(4);
    return grpc::Status::OK;
  };
  server_.scripts.create_job = [&](const auto& request, wan::v1::Job* answer) {
    frames = request.request().num_frames();
    answer->set_name("jobs/a1");
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"submit", "a cat", "--model", "5b", "--seconds", "2"}), 0);
  EXPECT_EQ(frames, 49);
  EXPECT_EQ(Run({"submit", "a cat", "--model", "5b", "--seconds", "2", "--fps", "8"}), 0);
  EXPECT_EQ(frames, 17);
}

TEST_F(BatchTest, WithoutACommandThereIsAnOverview) {
  EXPECT_EQ(RunAt({}), 0);
  EXPECT_THAT(out_, HasSubstr("wanctl generate \"A red kite over the sea\""));
  EXPECT_EQ(err_, "");
}

TEST_F(BatchTest, APromptMayStandInAFile) {
  std::string prompt;
  server_.scripts.create_job = [&](const auto& request, wan::v1::Job* answer) {
    prompt = request.request().prompt();
    answer->set_name("jobs/a1");
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"submit", "--model", "5b", "--prompt-file", Write("p.txt", "a cat\nruns\n")}), 0);
  EXPECT_EQ(prompt, "a cat\nruns");
  EXPECT_EQ(Run({"submit", "--model", "5b", "--prompt-file", "/nowhere/p.txt"}), 2);
  EXPECT_THAT(err_, HasSubstr("--prompt-file: /nowhere/p.txt cannot be read: No such file"));
  EXPECT_EQ(Run({"submit", "--model", "5b", "--prompt-file", folder_.path().string()}), 2);
  EXPECT_THAT(err_, HasSubstr("cannot be read: Is a directory"));
}

}  // namespace
}  // namespace wan::client
