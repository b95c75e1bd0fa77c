// LoRAs through the real server: registered by flags and by LoadModel, chosen per request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/test_server.h"

namespace wan::e2e {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Request = wan::v1::GenerationRequest;

std::string Checkpoint(const std::string& path) {
  return std::string(WAN_CHECKPOINT_DIR) + "/" + path;
}

struct LoraContent {
  int width = 64;        // others make it another model's
  float alpha = 0;       // as a tensor of every module; 0: none
  std::string metadata;  // the members of __metadata__
  bool nan = false;      // the last value of all is NaN
  bool image_branch = false;
};

// A LoRA of rank 2 for the first feed-forward matrices of the tiny models, which are [160, 64].
void WriteLora(const std::string& path, int seed, const LoraContent& content = {}) {
  constexpr int kBlocks = 3;
  constexpr int kRows = 160;
  constexpr int kRank = 2;
  std::string header = "{";
  std::string data;
  const auto add = [&](const std::string& name, int rows, int columns) {
    const size_t begin = data.size();
    for (int i = 0; i < rows * columns; ++i) {
      const auto value = static_cast<float>(0.3 * std::sin(i + seed));
      data.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
    header += (header.size() > 1 ? ",\"" : "\"") + name + R"(":{"dtype":"F32","shape":[)" +
              std::to_string(rows) + "," + std::to_string(columns) + R"(],"data_offsets":[)" +
              std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
  };
  const auto last = [&](float value) {
    data.replace(data.size() - sizeof(value), sizeof(value), reinterpret_cast<const char*>(&value),
                 sizeof(value));
  };
  for (int block = 0; block < kBlocks; ++block) {
    const std::string module = "diffusion_model.blocks." + std::to_string(block) + ".ffn.0.";
    add(module + "lora_down.weight", kRank, content.width);
    add(module + "lora_up.weight", kRows, kRank);
    if (content.nan) last(std::numeric_limits<float>::quiet_NaN());
    if (content.alpha != 0) {
      add(module + "alpha", 1, 1);
      last(content.alpha);
    }
    if (content.image_branch) {
      const std::string image = "diffusion_model.blocks." + std::to_string(block) + ".cross_attn.";
      add(image + "k_img.lora_down.weight", kRank, content.width);
      add(image + "k_img.lora_up.weight", content.width, kRank);
    }
  }
  if (!content.metadata.empty()) header += R"(,"__metadata__":{)" + content.metadata + "}";
  header += "}";
  const uint64_t size = header.size();
  std::ofstream(path, std::ios::binary)
      << std::string(reinterpret_cast<const char*>(&size), sizeof(size)) << header << data;
}

class LoraTest : public testing::Test {
 protected:
  LoraTest() {
    WriteLora(File("style"), 1);
    WriteLora(File("light"), 2);
    WriteLora(File("foreign"), 3, {.width = 3072});
    std::filesystem::create_directory(folder_.File("dir"));
    server_.emplace(ServerOptions{
        .data_dir = folder_.path(),
        .models = {ServerOptions::TinyModel(), "t2v=" + Checkpoint("t2v-a14b/diffusers")},
        .flags = {"--lora", "tiny/style=" + File("style"), "--lora", "tiny/light=" + File("light"),
                  "--lora", "t2v/pair@high=" + File("style"), "--lora",
                  "t2v/pair@low=" + File("light"), "--lora-dir", "tiny=" + folder_.File("dir")}});
  }

  std::string File(const std::string& name) const { return folder_.File(name + ".safetensors"); }

  static Request With(std::vector<std::pair<std::string, double>> loras,
                      const std::string& model = "tiny") {
    Request request = TinyRequest();
    request.set_model(model);
    request.clear_outputs();
    request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
    for (const auto& [name, scale] : loras) {
      wan::v1::LoraScale& lora = *request.add_loras();
      lora.set_name(name);
      lora.set_scale(scale);
    }
    return request;
  }

  // The latents that a request gives.
  std::string Latents(const Request& request) {
    const wan::v1::Job job = server_->Await(server_->Submit(request).name());
    EXPECT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED) << job.error().message();
    return job.artifacts_size() == 1 ? server_->Download(job.artifacts(0).name()) : "";
  }

  grpc::Status Load(const std::string& name, const std::string& path,
                    const std::vector<std::string>& loras, wan::v1::Model* model) {
    wan::v1::LoadModelRequest request;
    request.set_name(name);
    request.set_path(path);
    request.set_wait(true);
    for (const std::string& lora : loras) {
      wan::v1::LoraSource& source = *request.add_loras();
      source.set_name("x" + std::to_string(request.loras_size()));
      source.set_path(lora);
    }
    grpc::ClientContext context;
    return server_->models().LoadModel(&context, request, model);
  }

  ProcessResult Wanctl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {std::string(WAN_BINARY_DIR) + "/wanctl", "--server",
                                         server_->grpc_address()});
    return RunProcess(arguments);
  }

  TemporaryFolder folder_;
  std::optional<TestServer> server_;
};

TEST_F(LoraTest, AJobsLorasAreItsOwn) {
  const std::string base = Latents(With({}));
  const std::string style = Latents(With({{"style", 1}}));
  EXPECT_FALSE(style == base);
  const std::string both = Latents(With({{"style", 0.5}, {"light", -1}}));
  EXPECT_FALSE(both == base || both == style);
  EXPECT_TRUE(Latents(With({})) == base) << "the weights are again what they were";
  EXPECT_TRUE(Latents(With({{"light", 0}})) == base);
  EXPECT_TRUE(Latents(With({{"style", 1}})) == style);

  Request unscaled = With({{"style", 1}});
  unscaled.mutable_loras(0)->clear_scale();
  const wan::v1::Job job = server_->Await(server_->Submit(unscaled).name());
  ASSERT_EQ(job.request().loras_size(), 1);
  EXPECT_EQ(job.request().loras(0).name(), "style");
  EXPECT_EQ(job.request().loras(0).scale(), 1) << "the job shows what it ran with";
  EXPECT_TRUE(server_->Download(job.artifacts(0).name()) == style);
}

TEST_F(LoraTest, APairChangesBothExperts) {
  const std::string base = Latents(With({}, "t2v"));
  const std::string pair = Latents(With({{"pair", 1}}, "t2v"));
  EXPECT_FALSE(pair == base);
  EXPECT_TRUE(Latents(With({}, "t2v")) == base);
}

TEST_F(LoraTest, TheSwitchIsAStageOfItsOwn) {
  const auto stages = [&](const Request& request) {
    std::vector<std::string> names;
    for (const wan::v1::Event& event : server_->Watch(server_->Submit(request).name())) {
      if (event.has_stage_finished()) names.push_back(event.stage_finished().stage());
    }
    return names;
  };
  EXPECT_THAT(stages(With({})), Not(Contains("LoRA_Merging")));
  EXPECT_THAT(stages(With({{"style", 1}})), Contains("LoRA_Merging"));
  EXPECT_THAT(stages(With({{"style", 1}})), Not(Contains("LoRA_Merging"))) << "it is there already";
  EXPECT_THAT(stages(With({})), Contains("LoRA_Merging")) << "it has to go";
  EXPECT_NE(server_->Metrics().find(
                R"(wan_stage_seconds_count{model="tiny",quality="exact",stage="LoRA_Merging"} 2)"),
            std::string::npos);
}

TEST_F(LoraTest, BadLorasAreRefusedByName) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const struct {
    const char* what;
    Request request;
    std::vector<std::string> fields;
    std::string says;
  } cases[] = {
      {"unknown", With({{"nobody", 1}}), {"loras[0].name"}, "whose LoRAs are: style, light"},
      {"no name", With({{"", 1}}), {"loras[0].name"}, "whose LoRAs are: style, light"},
      {"another model's", With({{"style", 1}}, "t2v"), {"loras[0].name"}, "whose LoRAs are: pair"},
      {"twice", With({{"style", 1}, {"style", 1}}), {"loras[1].name"}, "twice"},
      {"too much", With({{"style", 10.5}}), {"loras[0].scale"}, "from -10 to 10"},
      {"no number", With({{"light", nan}}), {"loras[0].scale"}, "from -10 to 10"},
      {"all of it",
       With({{"nobody", -11}, {"style", nan}}),
       {"loras[0].name", "loras[0].scale", "loras[1].scale"},
       "nobody"},
  };
  for (const auto& bad : cases) {
    SCOPED_TRACE(bad.what);
    wan::v1::CreateJobRequest create;
    *create.mutable_request() = bad.request;
    grpc::ClientContext context;
    wan::v1::Job job;
    const grpc::Status status = server_->videos().CreateJob(&context, create, &job);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(ViolatedFields(status), testing::ElementsAreArray(bad.fields));
    EXPECT_THAT(status.error_message(), HasSubstr(bad.says));
  }
}

TEST_F(LoraTest, ModelsAreLoadedAndShownWithTheirLoras) {
  wan::v1::Model model;
  const grpc::Status loaded =
      Load("second", Checkpoint("ti2v-5b/original"), {File("style"), File("light")}, &model);
  ASSERT_TRUE(loaded.ok()) << loaded.error_message();
  ASSERT_EQ(model.loras_size(), 2);
  EXPECT_EQ(model.loras(1).name(), "x2");
  ASSERT_EQ(model.loras(1).parts_size(), 1);
  EXPECT_EQ(model.loras(1).parts(0).expert(), "only");
  EXPECT_EQ(model.loras(1).parts(0).path(), File("light"));
  EXPECT_EQ(model.loras(1).parts(0).rank(), 2);
  EXPECT_EQ(model.loras(1).parts(0).tensors(), 3);
  EXPECT_GT(model.loras(1).host_bytes(), 0u);
  Request request = With({{"x1", 1}}, "second");
  EXPECT_TRUE(Latents(request) == Latents(With({{"style", 1}})));

  // A broken file, and one of another model: told by file and tensor, and nothing is loaded.
  std::ofstream(File("broken"), std::ios::binary) << ReadWholeFile(File("style")).substr(0, 600);
  for (const std::string name : {"broken", "foreign"}) {
    const grpc::Status refused = Load(name, Checkpoint("ti2v-5b/original"), {File(name)}, &model);
    EXPECT_EQ(refused.error_code(),
              name == "broken" ? grpc::StatusCode::DATA_LOSS : grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(refused.error_message(), AllOf(HasSubstr("LoRA 'x1'"), HasSubstr(File(name))));
    if (name == "foreign") {
      EXPECT_THAT(refused.error_message(),
                  AllOf(HasSubstr("diffusion_model.blocks.0.ffn.0.lora_down.weight"),
                        HasSubstr("TI2V-5B")));
    }
  }
}

TEST_F(LoraTest, AlphaInTheMetadataGivesTheBitsOfAlphaTensors) {
  WriteLora(File("tensors"), 4, {.alpha = 1});
  WriteLora(File("metadata"), 4, {.metadata = R"("lora_alpha":"1","rank":"2","format":"pt")"});
  WriteLora(File("branch"), 4, {.alpha = 1, .image_branch = true});
  WriteLora(File("plain"), 4);
  wan::v1::Model model;
  const grpc::Status loaded =
      Load("second", Checkpoint("ti2v-5b/original"),
           {File("tensors"), File("metadata"), File("branch"), File("plain")}, &model);
  ASSERT_TRUE(loaded.ok()) << loaded.error_message();
  ASSERT_EQ(model.loras_size(), 4);
  const double factors[] = {0.5, 0.5, 0.5, 1};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(model.loras(i).parts(0).min_factor(), factors[i]) << i;
    EXPECT_EQ(model.loras(i).parts(0).max_factor(), factors[i]) << i;
  }
  const std::string tensors = Latents(With({{"x1", 1}}, "second"));
  EXPECT_TRUE(Latents(With({{"x2", 1}}, "second")) == tensors);
  EXPECT_TRUE(Latents(With({{"x3", 1}}, "second")) == tensors) << "the rest of the file is used";
  EXPECT_FALSE(Latents(With({{"x4", 1}}, "second")) == tensors);

  const wan::v1::Lora::Part& branch = model.loras(2).parts(0);
  EXPECT_EQ(branch.left_out_count(), 6);
  EXPECT_EQ(branch.left_out_tensors(0),
            "diffusion_model.blocks.0.cross_attn.k_img.lora_down.weight");
  EXPECT_THAT(Wanctl({"models"}).out,
              AllOf(HasSubstr("models/second LoRA x2: 3 tensors, rank 2, factor 0.5, "),
                    HasSubstr("models/second LoRA x3: 6 tensors were left out")));
  EXPECT_THAT(server_->AwaitLog("\"left_out_count\":6"), HasSubstr("\"min_factor\":0.5"));
}

TEST_F(LoraTest, ABadLoraDoesNotCostTheModelThatWasThere) {
  WriteLora(File("nan"), 5, {.nan = true});
  wan::v1::Model model;
  ASSERT_TRUE(Load("second", Checkpoint("ti2v-5b/original"), {File("style")}, &model).ok());
  const std::string before = Latents(With({{"x1", 1}}, "second"));
  const grpc::Status refused =
      Load("second", Checkpoint("ti2v-5b/original"), {File("light"), File("nan")}, &model);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_THAT(refused.error_message(),
              AllOf(HasSubstr("LoRA 'x2': " + File("nan")),
                    HasSubstr("ffn.0.lora_up.weight has a value that is NaN or infinite")));
  EXPECT_TRUE(Latents(With({{"x1", 1}}, "second")) == before) << "it serves as before";
  ASSERT_TRUE(Load("second", Checkpoint("ti2v-5b/original"), {File("light")}, &model).ok());
  EXPECT_FALSE(Latents(With({{"x1", 1}}, "second")) == before) << "it has the other LoRA";

  // A name that never was a model leaves nothing behind.
  EXPECT_FALSE(Load("third", Checkpoint("ti2v-5b/original"), {File("nan")}, &model).ok());
  const ProcessResult listed = Wanctl({"models"});
  EXPECT_THAT(listed.out, AllOf(HasSubstr("models/second"), Not(HasSubstr("models/third"))));
}

// A file in the folder is registered when the model is loaded again, a bad one beside it is not;
// and the model that is there has the same bits before and after.
TEST_F(LoraTest, AFolderOfLorasIsReadAtEveryLoad) {
  const std::string base = Latents(With({}));
  std::filesystem::copy_file(File("style"), folder_.File("dir/mine.safetensors"));
  std::filesystem::copy_file(File("foreign"), folder_.File("dir/foreign.safetensors"));
  const ProcessResult loaded = Wanctl({"models", "load", "tiny"});
  EXPECT_EQ(loaded.exit_code, 0) << loaded.err;
  EXPECT_THAT(loaded.out, AllOf(HasSubstr("style,light,mine"),
                                HasSubstr("models/tiny LoRA foreign was skipped: LoRA 'foreign'")));
  EXPECT_THAT(server_->AwaitLog("lora_skipped"), HasSubstr("foreign.safetensors"));
  EXPECT_TRUE(Latents(With({{"mine", 1}})) == Latents(With({{"style", 1}})));
  EXPECT_TRUE(Latents(With({})) == base);
  const ProcessResult kept = Wanctl({"models", "load", "tiny", "--remove-lora", "mine"});
  EXPECT_THAT(kept.err, HasSubstr("lies in a folder of lora_dirs"));
}

// Steps on each expert, scales for each expert, one request.
TEST_F(LoraTest, ALoraBringsItsSteps) {
  const ProcessResult added =
      Wanctl({"models", "load", "t2v", "--add-lora", "fast=" + File("light"), "--lora-schedule",
              "fast=steps:4,shift:5,boundary_step:2"});
  EXPECT_EQ(added.exit_code, 0) << added.err;
  EXPECT_THAT(added.out,
              AllOf(HasSubstr("pair,fast"),
                    HasSubstr("models/t2v LoRA fast: 4 steps, guidance 1, shift 5, low noise from "
                              "step 3\n")));
  Request request = With({{"fast", 1}}, "t2v");
  request.clear_steps();
  request.mutable_loras(0)->set_low_scale(0.5);
  const wan::v1::Job job = server_->Await(server_->Submit(request).name());
  ASSERT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED) << job.error().message();
  EXPECT_EQ(job.request().steps(), 4);
  EXPECT_EQ(job.request().boundary_step(), 2);
  EXPECT_EQ(job.request().solver(), wan::v1::SOLVER_EULER);
  EXPECT_EQ(job.request().guidance_scale(0), 1);
  EXPECT_EQ(job.request().loras(0).low_scale(), 0.5);
  const std::string latents = server_->Download(job.artifacts(0).name());
  // The stored request makes the same video, even after the LoRA's schedule has changed.
  ASSERT_EQ(Wanctl({"models", "load", "t2v", "--add-lora", "fast=" + File("light"),
                    "--lora-schedule", "fast=none"})
                .exit_code,
            0);
  EXPECT_TRUE(Latents(job.request()) == latents);
  request.set_steps(4);
  EXPECT_FALSE(Latents(request) == latents) << "the model's own shift and solver";
}

TEST_F(LoraTest, WanctlTakesThem) {
  const std::string output = folder_.File("out.safetensors");
  const std::vector<std::string> generate = {
      "generate", "--model", "tiny", "--prompt", "A cat.", "--size",   "64x32", "--frames",
      "5",        "--steps", "2",    "--seed",   "3",      "--output", output};
  const auto with = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), generate.begin(), generate.end());
    const ProcessResult result = Wanctl(flags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return ReadWholeFile(output);
  };
  const std::string base = with({});
  const std::string half = with({"--lora", "style:0.5"});
  EXPECT_FALSE(half == base);
  EXPECT_FALSE(with({"--lora", "style", "--lora", "light:-2"}) == half);
  EXPECT_TRUE(with({"--lora", "style:0.5"}) == half);
  EXPECT_TRUE(with({}) == base);
  EXPECT_THAT(Wanctl({"models"}).out, AllOf(HasSubstr("style,light"), HasSubstr("pair")));

  std::vector<std::string> unknown = generate;
  unknown.insert(unknown.end(), {"--lora", "nobody"});
  const ProcessResult refused = Wanctl(unknown);
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("loras[0].name"));

  const ProcessResult loaded = Wanctl({"models", "load", "third", Checkpoint("ti2v-5b/original"),
                                       "--lora", "mine=" + File("style")});
  EXPECT_EQ(loaded.exit_code, 0) << loaded.err;
  EXPECT_THAT(loaded.out, HasSubstr("mine"));
}

}  // namespace
}  // namespace wan::e2e
