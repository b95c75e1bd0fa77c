#include "engine/checkpoint/weight_source.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "engine/formats/safetensors.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

// Readers of a format say where their bytes can be read without the mapping.
TEST(TensorBytesTest, AreReadFromTheirFile) {
  const testing::TempFolder folder;
  const std::string path = folder / "a.safetensors";
  testing::WriteFile(
      path, testing::SafetensorsBytes(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                                      "\x01\x02\x03\x04"));
  const absl::StatusOr<TensorFile> file = ReadSafetensors(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_NE(file->file, nullptr);
  const StoredTensor& tensor = file->tensors.at(0);
  const TensorBytes bytes = {.bytes = tensor.bytes, .owner = file->mapping, .file = file->file};
  std::array<std::byte, 2> out;
  ASSERT_TRUE(bytes.Read(1, out).ok());
  EXPECT_EQ(out, (std::array{std::byte{2}, std::byte{3}}));
  std::filesystem::resize_file(path, 10);
  EXPECT_EQ(bytes.Read(1, out).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace wan
