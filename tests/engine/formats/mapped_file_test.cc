#include "engine/formats/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>

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

}  // namespace
}  // namespace wan
