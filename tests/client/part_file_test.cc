#include "client/part_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/client/fakes/temp_folder.h"

namespace wan::client {
namespace {

using fakes::ReadFile;
using fakes::TempFolder;
using fakes::WriteFile;
namespace fs = std::filesystem;

// sha256sum of "hello, world".
constexpr char kHelloWorld[] = "09ca7e4eaa6e8ae9c7d261167129184883644d07dfba7cbfbc4c8a2e08360d5b";

TEST(PartFileTest, BecomesTheFile) {
  const TempFolder folder;
  absl::StatusOr<PartFile> part = PartFile::Open(folder / "part");
  ASSERT_TRUE(part.ok()) << part.status();
  ASSERT_TRUE(part->Append("hello, ").ok());
  ASSERT_TRUE(part->Append("world").ok());
  EXPECT_EQ(part->size(), 12u);
  EXPECT_FALSE(fs::exists(folder / "file"));
  EXPECT_TRUE(part->Publish(12, kHelloWorld, folder / "file").ok());
  EXPECT_EQ(ReadFile(folder / "file"), "hello, world");
  EXPECT_FALSE(fs::exists(folder / "part"));
}

TEST(PartFileTest, GoesOnWithWhatIsThere) {
  const TempFolder folder;
  WriteFile(folder / "part", "hello, ");
  absl::StatusOr<PartFile> part = PartFile::Open(folder / "part");
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->size(), 7u);
  ASSERT_TRUE(part->Append("world").ok());
  EXPECT_TRUE(part->Publish(12, kHelloWorld, folder / "file").ok());
  EXPECT_EQ(ReadFile(folder / "file"), "hello, world");
}

TEST(PartFileTest, StaysWhenItIsLeft) {
  const TempFolder folder;
  {
    absl::StatusOr<PartFile> part = PartFile::Open(folder / "part");
    ASSERT_TRUE(part->Append("hello").ok());
  }
  EXPECT_EQ(ReadFile(folder / "part"), "hello");
}

TEST(PartFileTest, AnEmptyOneDoesNotStay) {
  const TempFolder folder;
  ASSERT_TRUE(PartFile::Open(folder / "part").ok());
  EXPECT_FALSE(fs::exists(folder / "part"));
}

TEST(PartFileTest, AWrongChecksumReplacesNothing) {
  const TempFolder folder;
  WriteFile(folder / "file", "old");
  absl::StatusOr<PartFile> part = PartFile::Open(folder / "part");
  ASSERT_TRUE(part->Append("hello, wor1d").ok());
  const absl::Status status = part->Publish(12, kHelloWorld, folder / "file");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_EQ(ReadFile(folder / "file"), "old");
  EXPECT_FALSE(fs::exists(folder / "part"));
}

TEST(PartFileTest, AWrongSizeReplacesNothing) {
  const TempFolder folder;
  absl::StatusOr<PartFile> part = PartFile::Open(folder / "part");
  ASSERT_TRUE(part->Append("hello, world").ok());
  EXPECT_EQ(part->Publish(13, kHelloWorld, folder / "file").code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(fs::exists(folder / "file"));
}

TEST(PartFileTest, StartsOver) {
  const TempFolder folder;
  WriteFile(folder / "part", "something else");
  absl::StatusOr<PartFile> part = PartFile::Open(folder / "part");
  ASSERT_TRUE(part->Restart().ok());
  EXPECT_EQ(part->size(), 0u);
  ASSERT_TRUE(part->Append("hello, world").ok());
  EXPECT_TRUE(part->Publish(12, kHelloWorld, folder / "file").ok());
  EXPECT_EQ(ReadFile(folder / "file"), "hello, world");
}

TEST(PartFileTest, OnlyARegularFileIsReplaced) {
  const TempFolder folder;
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  fs::create_symlink(folder / "file", folder / "link");
  fs::create_directory(folder / "folder");
  for (const char* name : {"fifo", "link", "folder"}) {
    absl::StatusOr<PartFile> part = PartFile::Open(folder / "part");
    ASSERT_TRUE(part->Append("hello, world").ok());
    EXPECT_EQ(part->Publish(12, kHelloWorld, folder / name).code(),
              absl::StatusCode::kInvalidArgument);
    ASSERT_TRUE(part->Restart().ok());
  }
  EXPECT_TRUE(fs::is_fifo(folder / "fifo"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_FALSE(fs::exists(folder / "file"));
}

TEST(PartFileTest, APartIsARegularFile) {
  const TempFolder folder;
  ASSERT_EQ(mkfifo((folder / "part").c_str(), 0600), 0);
  EXPECT_EQ(PartFile::Open(folder / "part").status().code(), absl::StatusCode::kInternal);
  fs::create_symlink(folder / "file", folder / "link");
  EXPECT_EQ(PartFile::Open(folder / "link").status().code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(fs::exists(folder / "file"));
}

TEST(PartFileTest, OnlyOneAtATime) {
  const TempFolder folder;
  absl::StatusOr<PartFile> part = PartFile::Open(folder / "part");
  ASSERT_TRUE(part->Append("hello").ok());
  EXPECT_EQ(PartFile::Open(folder / "part").status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ReadFile(folder / "part"), "hello");
}

TEST(PartFileTest, SaysWhatCannotBeWritten) {
  const TempFolder folder;
  const absl::Status status = PartFile::Open(folder / "none" / "part").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("none/part: No such file"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace wan::client
