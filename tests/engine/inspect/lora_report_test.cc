#include "engine/inspect/lora_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

// A LoRA for the golden models, whose width is 64.
class LoraReportTest : public ::testing::Test {
 protected:
  void Add(const std::string& name, const std::vector<int64_t>& shape) {
    size_t size = 4;
    for (const int64_t extent : shape) size *= static_cast<size_t>(extent);
    header_[name] = {
        {"dtype", "F32"}, {"shape", shape}, {"data_offsets", {data_.size(), data_.size() + size}}};
    data_.append(size, '\0');
  }

  Json Inspect(const std::string& model) {
    testing::WriteFile(path_, testing::SafetensorsBytes(header_.dump(), data_));
    return InspectLora(path_, WAN_CHECKPOINT_DIR + std::string("/") + model);
  }

  const testing::TempFolder folder_;
  const std::string path_ = (folder_ / "lora.safetensors").string();
  nlohmann::json header_ = nlohmann::json::object();
  std::string data_;
};

TEST_F(LoraReportTest, SaysWhatIsChangedAndWhatIsLeftOut) {
  header_["__metadata__"] = {{"lora_alpha", "6"}};
  Add("blocks.0.self_attn.q.lora_A.weight", {3, 64});
  Add("blocks.0.self_attn.q.lora_B.weight", {64, 3});
  Add("blocks.0.norm3.diff", {64});
  Add("blocks.0.cross_attn.k_img.lora_A.weight", {3, 64});
  const Json report = Inspect("t2v-a14b/original");
  EXPECT_EQ(report["ok"], true) << report;
  EXPECT_EQ(report["kinds"], Json({"LoRA", "difference"}));
  EXPECT_EQ(report["rank"], 3);
  EXPECT_EQ(report["tensors"], 2);
  EXPECT_EQ(report["factor"], Json({2.0, 2.0}));
  EXPECT_EQ(report["left_out"], Json({"blocks.0.cross_attn.k_img.lora_A.weight"}));
  EXPECT_TRUE(report["schedule"].is_null());
  const std::string text = LoraReportText(report);
  EXPECT_THAT(text, HasSubstr("kind          LoRA, difference\n"));
  EXPECT_THAT(text, HasSubstr("factor        2\n"));
  EXPECT_THAT(text, HasSubstr("left out      blocks.0.cross_attn.k_img.lora_A.weight\n"));
}

TEST_F(LoraReportTest, SaysWhatIsWrong) {
  Add("blocks.0.self_attn.q.lora_A.weight", {3, 65});
  const Json report = Inspect("t2v-a14b/original");
  EXPECT_EQ(report["ok"], false);
  EXPECT_THAT(LoraReportText(report), HasSubstr("problem       " + path_));
  EXPECT_EQ(Inspect("nowhere")["ok"], false);
}

}  // namespace
}  // namespace wan
