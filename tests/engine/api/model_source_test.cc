#include "engine/api/model_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wan {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string ErrorOf(std::string_view text) {
  const absl::Status status = ParseModelSource(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

TEST(ModelSourceTest, AFolderIsOnlyItsPath) {
  for (const char* const path : {"/models/a", "synthetic:ti2v-5b", "/models/a,b", "/models/a=b",
                                 "/m/a,B=c", "relative/a", ""}) {
    if (std::string_view(path).empty()) continue;
    const auto source = ParseModelSource(path);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ(source->base, path);
    EXPECT_THAT(source->parts, IsEmpty());
    EXPECT_EQ(ToString(*source), path);
  }
}

TEST(ModelSourceTest, PartsHaveKeys) {
  const auto source = ParseModelSource("vae=/v,1,transformer.high=/h,tokenizer=/t=2");
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(source->base, "");
  ASSERT_THAT(source->parts, SizeIs(3));
  EXPECT_EQ(source->PathOf(ModelPart::kVae), "/v,1");
  EXPECT_EQ(source->PathOf(ModelPart::kTokenizer), "/t=2");
  EXPECT_EQ(source->PathOf(ModelPart::kLowNoise), "");
  EXPECT_EQ(ToString(*source), "transformer.high=/h,vae=/v,1,tokenizer=/t=2");
}

TEST(ModelSourceTest, TheFolderMayHaveItsKeyOrStandFirst) {
  for (const char* const text :
       {"/base,text_encoder=/e", "path=/base,text_encoder=/e", "text_encoder=/e,path=/base"}) {
    const auto source = ParseModelSource(text);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ(source->base, "/base");
    EXPECT_EQ(ToString(*source), "path=/base,text_encoder=/e");
  }
}

TEST(ModelSourceTest, ErrorsNameTheKey) {
  EXPECT_THAT(ErrorOf("transformer.hi=/h"),
              StartsWith("transformer.hi: is not a part of a model; must be path, transformer, "
                         "transformer.high, transformer.low, text_encoder, vae, tokenizer or "
                         "tiny_decoder"));
  EXPECT_THAT(ErrorOf("vae=/a,vae=/b"), HasSubstr("vae: is given twice"));
  EXPECT_THAT(ErrorOf("/base,path=/b"), HasSubstr("path: is given twice"));
  EXPECT_THAT(ErrorOf("vae=/v,path="), HasSubstr("path: has no path"));
  EXPECT_THAT(ErrorOf("vae="), HasSubstr("vae: has no path; must be vae=FILE"));
}

TEST(ModelSourceTest, EveryPathIsChanged) {
  const auto add = [](std::string_view key, const std::string& path) {
    return "/" + std::string(key) + path;
  };
  EXPECT_EQ(ChangePaths("/a", add), "//a");
  EXPECT_EQ(ChangePaths("path=a,vae=b", add), "path=/patha,vae=/vaeb");
  EXPECT_EQ(ChangePaths("synthetic:ti2v-5b", add), "synthetic:ti2v-5b");
  EXPECT_EQ(ChangePaths("what=a", add), "what=a");
}

}  // namespace
}  // namespace wan
