// The factor of a LoRA: tensors of alpha, metadata, settings beside the file, and their
// contradictions.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/checkpoint/lora_file_fixture.h"

namespace wan {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::WriteFile;

TEST_F(LoraFileTest, AlphaTensorsOfEveryDtype) {
  const uint16_t half = 0x4A00;    // 12
  const uint16_t bfloat = 0x4140;  // 12
  const auto text = [](uint16_t v) { return std::string(reinterpret_cast<const char*>(&v), 2); };
  AddPair("blocks.0.self_attn.q", 8, 4, 8);
  Add("blocks.0.self_attn.q.alpha", {}, "F32", Scalar(12));
  AddPair("blocks.0.self_attn.k", 8, 4, 8);
  Add("blocks.0.self_attn.k.alpha", {1}, "F16", text(half));
  AddPair("blocks.0.self_attn.v", 8, 4, 8);
  Add("blocks.0.self_attn.v.alpha", {}, "BF16", text(bfloat));
  const auto file = Read();
  ASSERT_TRUE(file.ok()) << file.status();
  for (const LoraTerm& term : file->terms) EXPECT_EQ(term.factor, 3) << term.target;
}

TEST_F(LoraFileTest, SettingsOfTheMetadata) {
  AddPair("transformer.blocks.0.attn1.to_q", 8, 4, 8);
  AddPair("transformer.blocks.0.attn1.to_k", 8, 4, 8);
  header_["__metadata__"]["lora_adapter_metadata"] =
      R"({"transformer.lora_alpha":6,"transformer.use_rslora":true,
          "transformer.alpha_pattern":{"attn1.to_k":10}})";
  const auto file = Read();
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_THAT(file->terms, SizeIs(2));
  EXPECT_THAT(file->terms[0].factor, DoubleEq(5)) << "keys: alpha 10, root of the rank 2";
  EXPECT_THAT(file->terms[1].factor, DoubleEq(3)) << "queries";
}

TEST_F(LoraFileTest, SettingsBesideTheFileCountForPeftsNameAlone) {
  AddPair("base_model.model.blocks.0.attn1.to_q", 8, 4, 8);
  WriteFile(folder_ / "adapter_config.json", R"({"lora_alpha":8,"peft_type":"LORA"})");
  EXPECT_EQ(Read()->terms[0].factor, 1);
  path_ = (folder_ / "adapter_model.safetensors").string();
  EXPECT_EQ(Read()->terms[0].factor, 2);
  EXPECT_EQ(ReadLoraFile(folder_.string(), SmallConfig())->terms[0].factor, 2) << "as a folder";
}

TEST_F(LoraFileTest, WrongSettingsAreRefused) {
  AddPair("blocks.0.self_attn.q", 8, 4, 8);
  path_ = (folder_ / "adapter_model.safetensors").string();
  const auto refused = [&](const char* settings, absl::StatusCode code, const char* message) {
    WriteFile(folder_ / "adapter_config.json", settings);
    const absl::Status status = Read().status();
    EXPECT_EQ(status.code(), code) << settings;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("adapter_config.json"), HasSubstr(message)));
  };
  refused(R"({"lora_alpha":"8"})", absl::StatusCode::kDataLoss, "lora_alpha");
  refused(R"({"use_rslora":1})", absl::StatusCode::kDataLoss, "use_rslora");
  refused(R"({"use_dora":true})", absl::StatusCode::kDataLoss, "no lora_magnitude_vector");
  refused(R"({"peft_type":"OFT"})", absl::StatusCode::kUnimplemented, "must be LORA, LOHA or LOKR");
  refused(R"({"alpha_pattern":{"a.*":1}})", absl::StatusCode::kUnimplemented, "a.*");
  refused(R"({"alpha_pattern":{"a":"1"}})", absl::StatusCode::kDataLoss, "alpha_pattern");
  refused("{", absl::StatusCode::kDataLoss, "");
}

struct ScaledFile {
  const char* what;
  std::vector<std::pair<std::string, std::string>> metadata;
  double factor;
};

// One pair of rank 4 without an alpha tensor.
const ScaledFile kScaledFiles[] = {
    {"nothing", {{"format", "pt"}}, 1},
    {"PEFT", {{"format", "pt"}, {"lora_alpha", "2"}, {"rank", "4"}}, 0.5},
    {"SimpleTuner", {{"transformer.lora_alpha", "2"}, {"transformer.r", "4"}}, 0.5},
    {"kohya", {{"ss_network_alpha", "2.0"}, {"ss_network_dim", "4"}}, 0.5},
    {"LightX2V", {{"alpha", "8"}}, 2},
    {"a collector of LoRAs", {{"networkAlpha", "2"}, {"networkDim", "4"}}, 0.5},
    {"network_alpha", {{"network_alpha", "2"}}, 0.5},
    {"all that agree", {{"lora_alpha", "2"}, {"alpha", "2.0"}, {"ss_network_alpha", "2"}}, 0.5},
    {"stabilised", {{"lora_alpha", "2"}, {"use_rslora", "True"}}, 1},
    {"not stabilised", {{"lora_alpha", "2"}, {"use_rslora", "false"}}, 0.5},
    {"PEFT's settings under another key",
     {{"lora_config", R"({"r":4,"lora_alpha":2,"peft_type":"LORA"})"}},
     0.5},
    {"diffusers",
     {{"lora_adapter_metadata", R"({"transformer.r":4,"transformer.lora_alpha":2})"}},
     0.5},
    {"an anchored pattern",
     {{"lora_adapter_metadata",
       R"({"lora_alpha":4,"alpha_pattern":{"^blocks\\.0\\.attn1\\.to_q":2},"r":9,
           "rank_pattern":{"to_q":4}})"}},
     0.5},
    {"ranks by a regular expression",
     {{"lora_adapter_metadata", R"({"lora_alpha":2,"r":9,"rank_pattern":{".*to_q":4}})"}},
     0.5},
    {"kohya's way to say that alpha is the rank", {{"ss_network_alpha", "0"}}, 1},
    {"no value", {{"ss_network_alpha", "None"}, {"ss_network_dim", "Dynamic"}}, 1},
    {"LyCORIS, stabilised",
     {{"ss_network_alpha", "2"}, {"ss_network_args", R"({"rs_lora": "True"})"}},
     1},
    // The converter has multiplied alpha into the matrices.
    {"musubi-tuner's converter",
     {{"ss_network_module", "networks.lora_wan"},
      {"ss_network_alpha", "2"},
      {"ss_network_dim", "4"}},
     1},
    {"texts of other tools", {{"training_info", R"({"step": 3})"}, {"title", "{not JSON"}}, 1},
};

TEST_F(LoraFileTest, AlphaInPlainMetadata) {
  AddPair("transformer.blocks.0.attn1.to_q", 8, 4, 8);
  for (const ScaledFile& c : kScaledFiles) {
    SCOPED_TRACE(c.what);
    header_["__metadata__"] = nlohmann::json::object();
    for (const auto& [key, value] : c.metadata) header_["__metadata__"][key] = value;
    const auto file = Read();
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_THAT(file->terms, SizeIs(1));
    EXPECT_DOUBLE_EQ(file->terms[0].factor, c.factor);
  }
}

struct ContradictingFile {
  const char* what;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<std::string> says;
};

// One pair of rank 4 with an alpha tensor of 2.
const ContradictingFile kContradictingFiles[] = {
    {"two keys", {{"lora_alpha", "2"}, {"alpha", "4"}}, {"lora_alpha", "alpha", " is 2", " is 4"}},
    {"tensor and metadata",
     {{"ss_network_alpha", "16"}},
     {"ss_network_alpha of its metadata gives the alpha 16", "blocks.0.self_attn.q is 2"}},
    {"ranks",
     {{"lora_alpha", "2"}, {"rank", "8"}},
     {"rank of its metadata gives the rank 8", "blocks.0.self_attn.q has the rank 4"}},
    {"two ranks", {{"rank", "4"}, {"ss_network_dim", "8"}}, {"rank", "ss_network_dim"}},
    {"PEFT's settings and plain ones",
     {{"lora_adapter_metadata", R"({"transformer.lora_alpha":2})"}, {"lora_alpha", "1"}},
     {"lora_adapter_metadata", "lora_alpha"}},
    {"given but empty", {{"lora_alpha", ""}}, {"\"\"; must be a finite number"}},
    {"no number", {{"lora_alpha", "two"}}, {"\"two\"; must be a finite number"}},
    {"NaN", {{"alpha", "nan"}}, {"\"nan\"; must be a finite number"}},
    {"infinity", {{"networkAlpha", "inf"}}, {"\"inf\"; must be a finite number"}},
    {"neither true nor false", {{"use_rslora", "maybe"}}, {"use_rslora", "\"maybe\""}},
};

TEST_F(LoraFileTest, SettingsThatContradictAreRefused) {
  AddPair("blocks.0.self_attn.q", 8, 4, 8);
  Add("blocks.0.self_attn.q.alpha", {}, "F32", Scalar(2));
  for (const ContradictingFile& c : kContradictingFiles) {
    SCOPED_TRACE(c.what);
    header_["__metadata__"] = nlohmann::json::object();
    for (const auto& [key, value] : c.metadata) header_["__metadata__"][key] = value;
    ExpectRefused(absl::StatusCode::kDataLoss, c.says);
  }
}

// LoRAs are merged in fp32.
TEST_F(LoraFileTest, AFactorBeyondFp32IsRefused) {
  AddPair("blocks.0.self_attn.q", 8, 4, 8);
  for (const char* const alpha : {"1e300", "-1e40"}) {
    header_["__metadata__"]["lora_alpha"] = alpha;
    ExpectRefused(absl::StatusCode::kDataLoss, {"has a scaling factor that is not finite"});
  }
  header_["__metadata__"]["lora_alpha"] = "1e38";
  EXPECT_EQ(Read()->terms[0].factor, 0.25e38);
}

TEST_F(LoraFileTest, MetadataAndSettingsBesideTheFileMustAgree) {
  AddPair("blocks.0.self_attn.q", 8, 4, 8);
  path_ = (folder_ / "adapter_model.safetensors").string();
  WriteFile(folder_ / "adapter_config.json", R"({"lora_alpha":8,"r":4})");
  header_["__metadata__"]["lora_alpha"] = "8";
  EXPECT_EQ(Read()->terms[0].factor, 2);
  header_["__metadata__"]["lora_alpha"] = "4";
  ExpectRefused(absl::StatusCode::kDataLoss, {"adapter_config.json", "lora_alpha of its metadata"});
  header_["__metadata__"] = nlohmann::json::object();
  WriteFile(folder_ / "adapter_config.json", R"({"lora_alpha":8,"r":16})");
  ExpectRefused(absl::StatusCode::kDataLoss, {"adapter_config.json", "has the rank 4"});
}

// As kohya's files have it: the metadata speak of most modules, and a convolution has its own.
TEST_F(LoraFileTest, SingleModulesMayDifferFromTheMetadata) {
  AddPair("blocks.0.self_attn.q", 8, 4, 8);
  Add("blocks.0.self_attn.q.alpha", {}, "F32", Scalar(2));
  AddPair("blocks.0.self_attn.k", 8, 2, 8);
  Add("blocks.0.self_attn.k.alpha", {}, "F32", Scalar(1));
  header_["__metadata__"] = {{"ss_network_alpha", "2.0"}, {"ss_network_dim", "4"}};
  const auto file = Read();
  ASSERT_TRUE(file.ok()) << file.status();
  for (const LoraTerm& term : file->terms) EXPECT_EQ(term.factor, 0.5) << term.target;
}

}  // namespace
}  // namespace wan
