#include "engine/formats/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>

#include "engine/formats/safetensors.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MappedFileTest : public ::testing::Test {
 protected:
  std::shared_ptr<const MappedFile> Write(const std::string& bytes) {
    testing::WriteFile(path_, bytes);
    auto file = MappedFile::Open(path_);
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }

  const testing::TempFolder folder_;
  const std::string path_ = folder_ / "file";
};

TEST_F(MappedFileTest, ReadsParts) {
  const auto file = Write("0123456789");
  std::string out = "....";
  EXPECT_TRUE(
      file->Read(file->bytes().subspan(3, 3), reinterpret_cast<std::byte*>(out.data())).ok());
  EXPECT_EQ(out, "345.");
  EXPECT_TRUE(
      file->Read(file->bytes().subspan(10, 0), reinterpret_cast<std::byte*>(out.data())).ok());
  EXPECT_EQ(out, "345.");
}

TEST_F(MappedFileTest, AShorterFileIsDataLoss) {
  const auto file = Write(std::string(10'000, 'x'));
  std::filesystem::resize_file(path_, 5'000);
  std::array<std::byte, 10'000> out;
  EXPECT_TRUE(file->Read(file->bytes().subspan(0, 5'000), out.data()).ok());
  const absl::Status status = file->Read(file->bytes(), out.data());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(path_), HasSubstr("ends at byte 5000"), HasSubstr("10000")));
}

// A rename is how files are replaced under a running server.
TEST_F(MappedFileTest, ReadsWhatWasOpenedWhenTheFileIsReplaced) {
  const auto file = Write("before");
  testing::WriteFile(folder_ / "other", "after");
  std::filesystem::rename(folder_ / "other", path_);
  std::string out = "......";
  EXPECT_TRUE(file->Read(file->bytes(), reinterpret_cast<std::byte*>(out.data())).ok());
  EXPECT_EQ(out, "before");
}

// Readers of a format say where their bytes can be read without the mapping.
TEST_F(MappedFileTest, TensorsAreReadFromTheirFile) {
  testing::WriteFile(
      path_, testing::SafetensorsBytes(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                                       "\x01\x02\x03\x04"));
  const absl::StatusOr<TensorFile> file = ReadSafetensors(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_NE(file->file, nullptr);
  const StoredTensor& tensor = file->tensors.at(0);
  const TensorBytes bytes = {.bytes = tensor.bytes, .owner = file->mapping, .file = file->file};
  std::array<std::byte, 2> out;
  ASSERT_TRUE(bytes.Read(1, out).ok());
  EXPECT_EQ(out, (std::array{std::byte{2}, std::byte{3}}));
  std::filesystem::resize_file(path_, 10);
  EXPECT_EQ(bytes.Read(1, out).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace wan
