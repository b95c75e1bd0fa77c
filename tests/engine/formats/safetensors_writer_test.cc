#include "engine/formats/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

#include "tests/engine/raw_tensors.h"

namespace wan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class SafetensorsWriterTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  const std::string path_ = std::filesystem::path(testing::TempDir()) /
                            ("writer_" + std::to_string(getpid()) + ".safetensors");
};

template <typename T>
std::span<const std::byte> BytesOf(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

TEST_F(SafetensorsWriterTest, WritesWhatAReaderReads) {
  const std::vector<float> latents = {1, -2.5f, 3e30f,
                                      0, -0.0f, std::numeric_limits<float>::infinity()};
  const std::vector<int64_t> ids = {7, -1};
  const std::vector<uint8_t> mask = {1, 0, 1};
  const absl::Status status = WriteSafetensors(path_,
                                               {{"latents", "F32", {1, 2, 3, 1}, BytesOf(latents)},
                                                {"ids", "I64", {2}, BytesOf(ids)},
                                                {"none", "F32", {0, 4}, {}},
                                                {"mask \"é\"", "U8", {3}, BytesOf(mask)},
                                                {"scalar", "I64", {}, BytesOf(ids).subspan(0, 8)}},
                                               {{"seed", "42"}, {"model", "ti2v-5b"}});
  ASSERT_TRUE(status.ok()) << status;
  const auto tensors = ReadRawTensors(path_);
  ASSERT_THAT(tensors, SizeIs(5));
  EXPECT_EQ(tensors.at("latents").dtype, "F32");
  EXPECT_THAT(tensors.at("latents").shape, ElementsAre(1, 2, 3, 1));
  EXPECT_EQ(tensors.at("latents").As<float>(), latents);
  EXPECT_EQ(tensors.at("ids").As<int64_t>(), ids);
  EXPECT_THAT(tensors.at("none").shape, ElementsAre(0, 4));
  EXPECT_EQ(tensors.at("mask \"é\"").As<uint8_t>(), mask);
  EXPECT_THAT(tensors.at("scalar").shape, ElementsAre());
}

TEST_F(SafetensorsWriterTest, HasTheFormatsLayout) {
  const std::vector<float> values = {1, 2};
  ASSERT_TRUE(WriteSafetensors(path_, {{"x", "F32", {2}, BytesOf(values)}}, {{"a", "b"}}).ok());
  const std::string bytes = ReadFileBytes(path_);
  uint64_t size = 0;
  for (int i = 7; i >= 0; --i) size = size << 8 | static_cast<uint8_t>(bytes[i]);
  EXPECT_EQ(size % 8, 0u);
  ASSERT_EQ(bytes.size(), 8 + size + 8);
  const nlohmann::json header = nlohmann::json::parse(bytes.substr(8, size));
  EXPECT_EQ(header["__metadata__"]["a"], "b");
  EXPECT_EQ(header["x"]["data_offsets"], nlohmann::json({0, 8}));
  EXPECT_EQ(bytes[8], '{');
}

TEST_F(SafetensorsWriterTest, RefusesWhatNoReaderTakes) {
  const std::vector<float> two = {1, 2};
  const auto data = BytesOf(two);
  const struct {
    std::vector<SafetensorsTensor> tensors;
    const char* message;
  } cases[] = {
      {{{"x", "F32", {3}, data}}, "tensor x has 8 bytes; its shape needs 12"},
      {{{"x", "F33", {2}, data}}, "tensor x has dtype F33"},
      {{{"x", "F32", {-2}, data}}, "tensor x has an impossible shape: -2"},
      {{{"x", "F32", {1LL << 40, 1LL << 40}, data}}, "tensor x has an impossible shape"},
      {{{"", "F32", {2}, data}}, "cannot be called ''"},
      {{{"__metadata__", "F32", {2}, data}}, "cannot be called '__metadata__'"},
      {{{"x", "F32", {2}, data}, {"x", "F32", {2}, data}}, "tensor x occurs twice"},
      {{{"\xff", "F32", {2}, data}}, "not UTF-8"},
  };
  for (const auto& c : cases) {
    const absl::Status status = WriteSafetensors(path_, c.tensors);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
    EXPECT_FALSE(std::filesystem::exists(path_)) << c.message;
  }
}

TEST_F(SafetensorsWriterTest, SystemErrorsNameThePath) {
  const std::vector<float> values(1000);
  const std::vector<SafetensorsTensor> tensors = {{"x", "F32", {1000}, BytesOf(values)}};
  const absl::Status full = WriteSafetensors("/dev/full", tensors);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("/dev/full"));
  const absl::Status nowhere = WriteSafetensors(path_ + "/no/file", tensors);
  EXPECT_EQ(nowhere.code(), absl::StatusCode::kNotFound) << nowhere;
  EXPECT_THAT(std::string(nowhere.message()), HasSubstr("/no/file"));
}

// The header still fits, the second tensor does not.
TEST_F(SafetensorsWriterTest, NoticesThatTheDiskFillsUpOnTheWay) {
  const std::vector<float> values(1000);
  const std::vector<SafetensorsTensor> tensors = {{"a", "F32", {100}, BytesOf(values).first(400)},
                                                  {"b", "F32", {1000}, BytesOf(values)},
                                                  {"c", "F32", {0}, {}}};
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {2000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteSafetensors(path_, tensors);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("File too large"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
}

}  // namespace
}  // namespace wan
