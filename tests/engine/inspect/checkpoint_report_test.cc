#include "engine/inspect/checkpoint_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/formats/safetensors.h"
#include "engine/formats/safetensors_writer.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

const std::string& Original() {
  static const std::string path = WAN_CHECKPOINT_DIR "/ti2v-5b/original";
  return path;
}

TEST(CheckpointReportTest, ReadsTheTokenizer) {
  const std::string html = ::testing::TempDir() + "/spiece.model";
  std::ofstream(html) << "<html></html>";
  const Json report = InspectCheckpoint("path=" + Original() + ",tokenizer=" + html);
  EXPECT_EQ(report["ok"], false);
  ASSERT_EQ(report["problems"].size(), 1u);
  EXPECT_THAT(report["problems"][0].get<std::string>(), HasSubstr(html + ": "));
  EXPECT_EQ(InspectCheckpoint("path=" + Original() + ",tokenizer=/nowhere")["problems"].size(), 1u);
}

// The checkpoint can be used without it, so it does not count as a part that is needed.
TEST(CheckpointReportTest, ABadTinyDecoderInTheFolderIsReported) {
  const fs::path folder = fs::path(::testing::TempDir()) / "inspect_bad_tiny";
  fs::remove_all(folder);
  fs::create_directory(folder);
  for (const auto& entry : fs::directory_iterator(Original())) {
    fs::create_symlink(entry.path(), folder / entry.path().filename());
  }
  std::ofstream(folder / "taew2_2.pth") << "x";
  const Json report = InspectCheckpoint(folder.string());
  EXPECT_EQ(report["ok"], false);
  EXPECT_EQ(report["usable"], true);
  EXPECT_THAT(ReportText(report),
              AllOf(HasSubstr("1 problem:\n  " + (folder / "taew2_2.pth").string()),
                    HasSubstr("The model can be used without its tiny decoder")));
}

TEST(CheckpointReportTest, DescribesASoundCheckpoint) {
  const Json report = InspectCheckpoint(Original());
  EXPECT_EQ(report["path"], Original());
  EXPECT_EQ(report["ok"], true);
  EXPECT_EQ(report["layout"], "original");
  EXPECT_EQ(report["model"], "ti2v-5b");
  EXPECT_EQ(report["expert_boundary"], nullptr);
  EXPECT_EQ(report["tokenizer"], Original() + "/google/umt5-xxl/spiece.model");
  EXPECT_EQ(report["problems"], Json::array());
  ASSERT_EQ(report["components"].size(), 3u);
  const Json& transformer = report["components"][0];
  EXPECT_EQ(transformer["name"], "transformer");
  EXPECT_EQ(transformer["files"].size(), 2u);
  EXPECT_EQ(transformer["tensors"], 96);
  EXPECT_EQ(transformer["parameters"], 243104);
  EXPECT_EQ(transformer["bytes"], 4 * 243104);
  EXPECT_EQ(transformer["dtypes"], Json({{"F32", 96}}));
  EXPECT_EQ(transformer["dimensions"]["dim"], 64);
  EXPECT_EQ(transformer["dimensions"]["patch_size"], Json({1, 2, 2}));
  EXPECT_EQ(transformer["problems"], Json::array());
  EXPECT_EQ(report["components"][1]["name"], "text_encoder");
  EXPECT_EQ(report["components"][1]["dimensions"]["num_heads"], 4);
  EXPECT_EQ(report["components"][2]["name"], "vae");
  EXPECT_EQ(report["components"][2]["dimensions"]["kind"], "2.2");

  EXPECT_THAT(
      ReportText(report),
      AllOf(HasSubstr("layout        original\n"), HasSubstr("model         ti2v-5b\n"),
            HasSubstr("(2 shards)"), HasSubstr("96 (96 F32), 243104 parameters, 949.62 KiB"),
            HasSubstr("vocab_size 960"), Not(HasSubstr("experts")),
            HasSubstr("complete: nothing is missing or wrong\n")));
}

TEST(CheckpointReportTest, DescribesTwoExperts) {
  const Json report = InspectCheckpoint(WAN_CHECKPOINT_DIR "/i2v-a14b/diffusers");
  EXPECT_EQ(report["model"], "i2v-a14b");
  EXPECT_EQ(report["expert_boundary"], 0.9);
  ASSERT_EQ(report["components"].size(), 4u);
  EXPECT_EQ(report["components"][1]["name"], "transformer_2");
  EXPECT_THAT(ReportText(report), HasSubstr("boundary 0.9\n"));
}

TEST(CheckpointReportTest, DescribesFewSteps) {
  const testing::TempFolder folder;
  const std::string path = (folder / "m").string();
  testing::LinkFolder(WAN_CHECKPOINT_DIR "/t2v-a14b/original", path);
  EXPECT_EQ(InspectCheckpoint(path)["few_step"], nullptr);
  testing::WriteFile(fs::path(path) / "few_step.json",
                     R"({"denoising_step_list": [1000, 500], "sample_shift": 5})");
  Json report = InspectCheckpoint(path);
  EXPECT_EQ(report["ok"], true);
  EXPECT_EQ(report["few_step"], Json({{"timesteps", {1000.0, 500.0}},
                                      {"shift", 5.0},
                                      {"solver", "euler"},
                                      {"timestep_rounding", "none"},
                                      {"recognised", nullptr}}));
  EXPECT_THAT(ReportText(report),
              HasSubstr("few steps     timesteps [1000.0,500.0], shift 5, solver euler\n"));
  testing::WriteFile(
      fs::path(path) / "few_step.json",
      R"({"denoising_step_list": [1000, 500], "sample_shift": 5, "boundary_step_index": 1})");
  EXPECT_THAT(ReportText(InspectCheckpoint(path)),
              HasSubstr("solver euler, low noise from step 1\n"));
}

TEST(CheckpointReportTest, DescribesDefaultsOfRequests) {
  const testing::TempFolder folder;
  const std::string path = (folder / "m").string();
  testing::LinkFolder(WAN_CHECKPOINT_DIR "/ti2v-5b/diffusers", path);
  EXPECT_EQ(InspectCheckpoint(path)["generation_defaults"], nullptr);
  const Json defaults = {{"width", 64},  {"height", 32},      {"num_frames", 5},
                         {"fps", 8},     {"steps", 2},        {"guidance_scale", {4.0}},
                         {"shift", 3.0}, {"solver", "euler"}, {"negative_prompt", "grey"}};
  testing::WriteFile(fs::path(path) / "generation_defaults.json", defaults.dump());
  const Json report = InspectCheckpoint(path);
  EXPECT_EQ(report["ok"], true);
  EXPECT_EQ(report["generation_defaults"], defaults);
  EXPECT_THAT(ReportText(report), HasSubstr("defaults      {\"width\":64,\"height\":32,"));
}

TEST(CheckpointReportTest, DescribesSyntheticModelsWithTwoExperts) {
  const Json report = InspectCheckpoint("synthetic:i2v-a14b");
  EXPECT_EQ(report["ok"], true);
  EXPECT_EQ(report["model"], "i2v-a14b");
  EXPECT_EQ(report["expert_boundary"], 0.9);
  ASSERT_EQ(report["components"].size(), 4u);
  for (const int expert : {0, 1}) {
    EXPECT_EQ(report["components"][expert]["dimensions"]["in_channels"], 36);
    EXPECT_EQ(report["components"][expert]["dimensions"]["dim"], 5120);
  }
  EXPECT_EQ(report["components"][3]["dimensions"]["kind"], "2.1");
}

TEST(CheckpointReportTest, DescribesOneFile) {
  const Json report = InspectCheckpoint(WAN_CHECKPOINT_DIR "/../packed/wide/high.gguf");
  EXPECT_EQ(report["ok"], true) << report.dump();
  EXPECT_EQ(report["layout"], "files");
  ASSERT_EQ(report["components"].size(), 1u);
  EXPECT_EQ(report["components"][0]["dimensions"]["num_heads"], 2);
  EXPECT_THAT(ReportText(report),
              AllOf(HasSubstr(" Q4_K"), HasSubstr(" Q6_K"), HasSubstr("complete")));
}

// The transformers library may store the token embedding under both of its names.
TEST(CheckpointReportTest, ATiedEmbeddingCountsOnce) {
  const testing::TempFolder folder;
  const fs::path path = folder / "model";
  testing::LinkFolder(WAN_CHECKPOINT_DIR "/ti2v-5b/diffusers", path);
  const Json once = InspectCheckpoint(path.string())["components"][1];
  const fs::path weights = path / "text_encoder" / "model.safetensors";
  {
    const TensorFile file = ReadSafetensors(weights.string()).value();
    std::vector<SafetensorsTensor> tensors;
    for (const StoredTensor& tensor : file.tensors) {
      const std::string dtype(DTypeName(tensor.dtype));
      tensors.push_back({tensor.name, dtype, tensor.shape, tensor.bytes});
      if (tensor.name != "shared.weight") continue;
      tensors.push_back({"encoder.embed_tokens.weight", dtype, tensor.shape, tensor.bytes});
    }
    ASSERT_EQ(tensors.size(), file.tensors.size() + 1);
    const fs::path both = path / "both.safetensors";
    ASSERT_TRUE(WriteSafetensors(both.string(), tensors).ok());
    fs::rename(both, weights);
  }
  for (const std::string& place : {path.string(), weights.string()}) {
    const Json report = InspectCheckpoint(place);
    EXPECT_EQ(report["ok"], true) << report.dump();
    const Json& twice = report["components"][place == path.string() ? 1 : 0];
    for (const char* const count : {"tensors", "parameters", "bytes"}) {
      EXPECT_EQ(twice[count], once[count]) << place << " " << count;
    }
  }
}

TEST(CheckpointReportTest, DescribesNamedParts) {
  const Json report =
      InspectCheckpoint(WAN_CHECKPOINT_DIR "/t2v-a14b/original,text_encoder=" WAN_CHECKPOINT_DIR
                                           "/../packed/fp8/umt5.safetensors");
  EXPECT_EQ(report["ok"], true) << report.dump();
  EXPECT_EQ(report["model"], "t2v-a14b");
  EXPECT_EQ(report["components"].size(), 4u);
  EXPECT_THAT(report["components"][2]["file"].get<std::string>(), HasSubstr("fp8/umt5"));
}

TEST(CheckpointReportTest, DescribesSyntheticModels) {
  const Json report = InspectCheckpoint("synthetic:ti2v-5b");
  EXPECT_EQ(report["ok"], true);
  EXPECT_EQ(report["layout"], "synthetic");
  EXPECT_EQ(report["tokenizer"], nullptr);
  EXPECT_EQ(report["components"][0]["bytes"], 2 * 4'999'787'712);
  EXPECT_EQ(report["components"][0]["dtypes"], Json({{"BF16", 825}}));
  EXPECT_THAT(ReportText(report), HasSubstr("4999787712 parameters, 9.31 GiB"));
}

// What can be made out is told, and all that is wrong.
TEST(CheckpointReportTest, DescribesDamage) {
  const testing::TempFolder folder;
  const std::string path = (folder / "m").string();
  testing::LinkFolder(Original(), path);
  testing::ReplaceFile(fs::path(path) / "Wan2.2_VAE.pth", "cut");
  fs::remove(fs::path(path) / "diffusion_pytorch_model-00002-of-00002.safetensors");
  fs::remove(fs::path(path) / "google/umt5-xxl/spiece.model");
  const Json report = InspectCheckpoint(path);
  EXPECT_EQ(report["ok"], false);
  EXPECT_EQ(report["model"], "ti2v-5b");
  EXPECT_EQ(report["problems"].size(), 1u);
  const Json& transformer = report["components"][0];
  EXPECT_EQ(transformer["dimensions"]["num_layers"], 3);
  EXPECT_EQ(transformer["files"].size(), 1u);
  EXPECT_GT(transformer["tensors"], 0);
  EXPECT_EQ(transformer["problems"].size(), 1u);
  const Json& vae = report["components"][2];
  EXPECT_EQ(vae["dimensions"], nullptr);
  EXPECT_EQ(vae["tensors"], 0);
  EXPECT_EQ(vae["problems"].size(), 1u);
  EXPECT_THAT(ReportText(report),
              AllOf(HasSubstr("3 problems:\n"), HasSubstr("spiece.model: does not exist"),
                    HasSubstr("-00002-of-00002.safetensors: does not exist"),
                    HasSubstr("Wan2.2_VAE.pth: is "), HasSubstr("dimensions  unknown"),
                    Not(HasSubstr("complete"))));
}

TEST(CheckpointReportTest, SaysWhatIsNoCheckpoint) {
  const Json report = InspectCheckpoint("/nowhere");
  EXPECT_EQ(report["ok"], false);
  EXPECT_EQ(report["layout"], nullptr);
  EXPECT_EQ(report["model"], nullptr);
  EXPECT_EQ(report["components"], Json::array());
  EXPECT_THAT(ReportText(report), AllOf(HasSubstr("layout        unknown"),
                                        HasSubstr("1 problem:\n  /nowhere: does not exist")));
}

}  // namespace
}  // namespace wan
