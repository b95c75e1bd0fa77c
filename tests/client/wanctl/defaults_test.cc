// What commands take where the command line leaves it open: model, file and seed.
#include "client/wanctl/defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/client/wanctl/wanctl_fixture.h"

namespace wan::client {
namespace {

using fakes::Completed;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using wan::v1::MODEL_STATE_FAILED;
using wan::v1::MODEL_STATE_LOADING;
using wan::v1::MODEL_STATE_READY;
using wan::v1::MODEL_STATE_UNLOADED;

std::vector<wan::v1::Model> Models(
    const std::vector<std::pair<std::string, wan::v1::ModelState>>& states) {
  std::vector<wan::v1::Model> models;
  for (const auto& [name, state] : states) {
    models.emplace_back().set_name("models/" + name);
    models.back().set_state(state);
  }
  return models;
}

TEST(DefaultsTest, TheOnlyModelThatCanBeMeant) {
  EXPECT_EQ(*OnlyModel(Models({{"a", MODEL_STATE_READY}})), "a");
  EXPECT_EQ(*OnlyModel(Models({{"a", MODEL_STATE_UNLOADED}, {"b", MODEL_STATE_READY}})), "b");
  EXPECT_EQ(*OnlyModel(Models({{"a", MODEL_STATE_LOADING}, {"b", MODEL_STATE_FAILED}})), "a");
  // The server says what is wrong with it.
  EXPECT_EQ(*OnlyModel(Models({{"a", MODEL_STATE_FAILED}})), "a");
  EXPECT_EQ(
      OnlyModel(
          Models({{"a", MODEL_STATE_READY}, {"b", MODEL_STATE_LOADING}, {"c", MODEL_STATE_FAILED}}))
          .status()
          .message(),
      "--model is missing; must name one of a, b");
  EXPECT_THAT(std::string(OnlyModel({}).status().message()), HasSubstr("wanctl models load"));
}

TEST(DefaultsTest, FilesAreNamedAfterPromptAndJob) {
  const auto name = [](const std::string& prompt, const std::string& job = "jobs/4f1c9a52d07be6") {
    return DefaultOutput(prompt, job, wan::v1::OUTPUT_KIND_MP4).path;
  };
  EXPECT_EQ(name("A red cat runs on the beach."), "a-red-cat-runs-on-4f1c9a52.mp4");
  EXPECT_EQ(name("  It's   --  Rain! "), "its-rain-4f1c9a52.mp4");
  EXPECT_EQ(name("../../etc/passwd"), "etc-passwd-4f1c9a52.mp4") << "stays in the folder";
  EXPECT_EQ(name("猫"), "4f1c9a52.mp4");
  EXPECT_EQ(name("", "jobs/a1"), "a1.mp4");
  EXPECT_LT(name(std::string(5000, 'x')).size(), 100u);
  EXPECT_EQ(DefaultOutput("a", "jobs/a1", wan::v1::OUTPUT_KIND_LOSSLESS_MKV),
            (OutputFile{wan::v1::OUTPUT_KIND_LOSSLESS_MKV, "a-a1.mkv"}));
}

class CurrentFolderTest : public WanctlTest {
 protected:
  CurrentFolderTest() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
    ScriptModels(Models({{"5b", MODEL_STATE_READY}}));
  }
  ~CurrentFolderTest() override { std::filesystem::current_path(before_); }

  void ScriptModels(const std::vector<wan::v1::Model>& models) {
    server_.scripts.list_models = [models](const auto&, wan::v1::ListModelsResponse* response) {
      response->mutable_models()->Add(models.begin(), models.end());
      return grpc::Status::OK;
    };
  }

  const std::filesystem::path before_;
};

TEST_F(CurrentFolderTest, GenerateNeedsOnlyAPrompt) {
  const auto mp4 = Serve(wan::v1::OUTPUT_KIND_MP4, "video.mp4", "mp4 bytes");
  Script({CompletedWith(1, {mp4})});
  wan::v1::Job job;
  job.mutable_request()->set_seed(4711);
  ScriptJob(job);
  ASSERT_EQ(Run({"generate", "--prompt", "a cat"}), 0) << err_;
  EXPECT_EQ(out_, "a-cat-a1.mp4\n");
  EXPECT_EQ(fakes::ReadFile(folder_ / "a-cat-a1.mp4"), "mp4 bytes");
  EXPECT_THAT(err_, EndsWith("wanctl: jobs/a1 has seed 4711\n"));
  const wan::v1::GenerationRequest sent = generate_requests_.All()[0].request();
  EXPECT_EQ(sent.model(), "5b");
  EXPECT_THAT(sent.outputs(), ElementsAre(wan::v1::OUTPUT_KIND_MP4));
}

TEST_F(CurrentFolderTest, TheSeedOfTheCommandLineIsTheLastLineToo) {
  Script({CompletedWith(1, {Serve(wan::v1::OUTPUT_KIND_MP4, "video.mp4", "mp4 bytes")})});
  EXPECT_EQ(Run({"generate", "--prompt", "a cat", "--seed", "3"}), 0);
  EXPECT_THAT(err_, EndsWith("wanctl: jobs/a1 has seed 3\n"));
  EXPECT_EQ(Run({"generate", "--prompt", "a cat", "--seed", "3", "--json"}), 0);
  EXPECT_THAT(err_, Not(HasSubstr("has seed"))) << "programs have it in the messages";
}

TEST_F(CurrentFolderTest, OfANegativeSeedTheDrawnOneIsPrinted) {
  Script({CompletedWith(1, {Serve(wan::v1::OUTPUT_KIND_MP4, "video.mp4", "mp4 bytes")})});
  wan::v1::Job job;
  job.mutable_request()->set_seed(4711);
  ScriptJob(job);
  EXPECT_EQ(Run({"generate", "--prompt", "a cat", "--seed", "-1"}), 0);
  EXPECT_THAT(err_, EndsWith("wanctl: jobs/a1 has seed 4711\n"));
  server_.scripts.get_job = [](const auto&, wan::v1::Job*) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "gone");
  };
  EXPECT_EQ(Run({"generate", "--prompt", "a cat", "--seed", "-1"}), 0);
  EXPECT_THAT(err_, EndsWith("wanctl: jobs/a1 has a seed that could not be read; 'wanctl get "
                             "jobs/a1' shows it\n"));
}

TEST_F(CurrentFolderTest, SeveralModelsAreNamedAndNoJobIsMade) {
  ScriptModels(Models({{"5b", MODEL_STATE_READY}, {"14b", MODEL_STATE_READY}}));
  for (const char* command : {"generate", "submit", "quote"}) {
    EXPECT_EQ(Run({command, "--prompt", "a cat"}), 2);
    EXPECT_EQ(err_, "wanctl: --model is missing; must name one of 5b, 14b\n");
  }
  EXPECT_EQ(generate_requests_.All().size(), 0u);
}

TEST_F(CurrentFolderTest, DownloadWithoutANameTakesAllFiles) {
  wan::v1::Job job;
  job.set_name("jobs/a1");
  job.mutable_request()->set_prompt("a cat");
  *job.add_artifacts() = Serve(wan::v1::OUTPUT_KIND_MP4, "video.mp4", "mp4 bytes");
  *job.add_artifacts() = Serve(wan::v1::OUTPUT_KIND_LATENTS, "latents.safetensors", "numbers");
  ScriptJob(job);
  ASSERT_EQ(Run({"download", "a1"}), 0) << err_;
  EXPECT_EQ(out_, "a-cat-a1.mp4\na-cat-a1.safetensors\n");
  EXPECT_EQ(fakes::ReadFile(folder_ / "a-cat-a1.safetensors"), "numbers");
  job.clear_artifacts();
  ScriptJob(job);
  EXPECT_EQ(Run({"download", "a1"}), 3);
  EXPECT_EQ(err_, "wanctl: jobs/a1 has no files; 'wanctl get jobs/a1' shows why\n");
}

// A terminal has colours unless its user refuses them; a pipe has none.
TEST_F(CurrentFolderTest, ColoursAreForTerminals) {
  ScriptModels(Models({{"5b", MODEL_STATE_READY}, {"14b", MODEL_STATE_FAILED}}));
  EXPECT_EQ(Run({"models"}), 0);
  EXPECT_THAT(out_, Not(HasSubstr("\x1b")));
  const std::string plain = out_;
  out_colours_ = true;
  EXPECT_EQ(Run({"models"}), 0);
  EXPECT_THAT(out_, HasSubstr("\x1b[32mREADY\x1b[0m"));
  EXPECT_THAT(out_, HasSubstr("\x1b[31mFAILED\x1b[0m"));
  std::string without;
  for (size_t i = 0; i < out_.size(); ++i) {
    if (out_[i] == '\x1b')
      i = out_.find('m', i);
    else
      without += out_[i];
  }
  EXPECT_EQ(without, plain) << "the columns stay where they are";
}

}  // namespace
}  // namespace wan::client
