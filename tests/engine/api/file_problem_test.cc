// What is said of paths and contents that are not what is wanted.
#include "engine/api/file_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "tests/engine/formats/files.h"

namespace wan {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CheckPathTest : public ::testing::Test {
 protected:
  std::string Path(std::string_view name) const { return (folder_ / name).string(); }

  static std::string ErrorOf(const std::string& path, PathKind kind, absl::StatusCode code) {
    const absl::Status status = CheckPath(path, kind);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), StartsWith(path + ": "));
    return std::string(status.message());
  }
  static std::string Missing(const std::string& path) {
    return ErrorOf(path, PathKind::kFile, absl::StatusCode::kNotFound);
  }

  const testing::TempFolder folder_;
};

TEST_F(CheckPathTest, FilesAndFoldersThatAreThere) {
  testing::WriteFile(folder_ / "file", "x");
  fs::create_symlink("file", folder_ / "link");
  EXPECT_TRUE(CheckPath(Path("file"), PathKind::kFile).ok());
  EXPECT_TRUE(CheckPath(Path("link"), PathKind::kFile).ok());
  EXPECT_TRUE(CheckPath(folder_.string(), PathKind::kFolder).ok());
}

TEST_F(CheckPathTest, OneKindInPlaceOfTheOther) {
  testing::WriteFile(folder_ / "file", "x");
  EXPECT_THAT(ErrorOf(Path("file"), PathKind::kFolder, absl::StatusCode::kFailedPrecondition),
              HasSubstr("is a file; must be a folder"));
  EXPECT_THAT(ErrorOf(folder_.string(), PathKind::kFile, absl::StatusCode::kFailedPrecondition),
              HasSubstr("is a folder; must be a file"));
  EXPECT_THAT(ErrorOf("/dev/null", PathKind::kFile, absl::StatusCode::kFailedPrecondition),
              HasSubstr("is not a regular file"));
}

TEST_F(CheckPathTest, TheFirstPartThatIsMissingIsNamed) {
  EXPECT_EQ(Missing(Path("gone")), Path("gone") + ": does not exist");
  EXPECT_EQ(
      Missing(Path("gone/deep/file")),
      Path("gone/deep/file") + ": does not exist, because there is no folder " + Path("gone"));
  testing::WriteFile(folder_ / "file", "x");
  EXPECT_EQ(Missing(Path("file/below")), Path("file/below") + ": does not exist, because " +
                                             Path("file") + " is a file and not a folder");
}

TEST_F(CheckPathTest, LinksToNothingAreNamedWithTheirTarget) {
  fs::create_symlink("../elsewhere/model", folder_ / "link");
  const std::string target =
      (fs::path(folder_.string()).parent_path() / "elsewhere/model").string();
  EXPECT_EQ(Missing(Path("link")),
            Path("link") + ": is a link to " + target + ", which does not exist");
  fs::create_symlink("link", folder_ / "second");
  EXPECT_THAT(Missing(Path("second")), HasSubstr("is a link to " + target));
  EXPECT_THAT(Missing(Path("link/config.json")),
              HasSubstr(Path("link") + " is a link to " + target));
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_THAT(Missing(Path("loop")), HasSubstr("is a link that leads to itself"));
}

TEST_F(CheckPathTest, ACacheThatWasCopiedWithoutItsBlobs) {
  fs::create_directories(folder_ / "snapshots/abc");
  fs::create_symlink("../../blobs/0123", folder_ / "snapshots/abc/model.safetensors");
  EXPECT_THAT(Missing(Path("snapshots/abc/model.safetensors")),
              AllOf(HasSubstr("is a link to " + Path("blobs/0123") + ", which does not exist"),
                    HasSubstr("blobs is needed beside snapshots")));
}

TEST_F(CheckPathTest, WhatMayNotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  testing::WriteFile(folder_ / "file", "x");
  fs::permissions(folder_ / "file", fs::perms::none);
  EXPECT_THAT(ErrorOf(Path("file"), PathKind::kFile, absl::StatusCode::kPermissionDenied),
              AllOf(HasSubstr("may not be read by this process's user "), HasSubstr("mode 0000")));
  fs::create_directory(folder_ / "closed");
  testing::WriteFile(folder_ / "closed/file", "x");
  fs::permissions(folder_ / "closed", fs::perms::none);
  EXPECT_THAT(ErrorOf(Path("closed/file"), PathKind::kFile, absl::StatusCode::kPermissionDenied),
              HasSubstr("the folder " + Path("closed") + " may not be entered by "));
  fs::permissions(folder_ / "closed", fs::perms::owner_all);
}

TEST_F(CheckPathTest, AnEmptyPath) {
  EXPECT_EQ(CheckPath("", PathKind::kFile).code(), absl::StatusCode::kNotFound);
}

TEST_F(CheckPathTest, ALinkToNothingWasGiven) {
  EXPECT_FALSE(IsGiven(Path("gone")));
  fs::create_symlink("gone", folder_ / "link");
  EXPECT_TRUE(IsGiven(Path("link")));
}

struct ForeignCase {
  std::string_view beginning;
  FileContent expected;
  std::string_view says;  // empty: nothing
};

const ForeignCase kForeign[] = {
    {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
     FileContent::kSafetensors, "is a Git LFS pointer, not the file: run git lfs pull"},
    {"version https://git-lfs.github.com/spec/v1\n", FileContent::kYaml, "is a Git LFS pointer"},
    {"<!DOCTYPE html>\n<html>", FileContent::kTorchArchive, "is an HTML page"},
    {"\xef\xbb\xbf\n <HTML lang=\"en\">", FileContent::kJson, "is an HTML page"},
    {"PK\x03\x04\0\0"sv, FileContent::kSafetensors, "is a zip archive or a file of torch.save"},
    {"PK\x03\x04\0\0"sv, FileContent::kTorchArchive, ""},
    {"\x80\x02}q"sv, FileContent::kSafetensors, "is a pickle of Python"},
    {"\x80\x02\x8a\x0al\xfc"sv, FileContent::kTorchArchive, "is a pickle of Python"},
    {"GGUF\x03\0\0\0"sv, FileContent::kSafetensors, "is a GGUF file"},
    {"\x1f\x8b\x08\0"sv, FileContent::kSentencePiece, "is compressed with gzip"},
    {"\x28\xb5\x2f\xfd\0"sv, FileContent::kSafetensors, "is compressed with Zstandard"},
    {"\xfd"
     "7zXZ\0\0"sv,
     FileContent::kSafetensors, "is compressed with xz"},
    {"", FileContent::kSafetensors, "is empty (0 bytes)"},
    {"", FileContent::kYaml, "is empty (0 bytes)"},
    {"\x10\0\0\0\0\0\0\0{\"a\":"sv, FileContent::kTorchArchive, "is a safetensors file"},
    {"\x10\0\0\0\0\0\0\0{\"a\":"sv, FileContent::kSafetensors, ""},
    {"\x89PNG\r\n\x1a\n"sv, FileContent::kSafetensors, "is a PNG image"},
    {"\x89PNG\r\n\x1a\n"sv, FileContent::kImage, ""},
    {R"({"error":"Unauthorized"})", FileContent::kSafetensors, "is a JSON text"},
    {R"({"a":1})", FileContent::kJson, ""},
    {"models:\n", FileContent::kYaml, ""},
    {"Entry not found", FileContent::kSafetensors,
     "is a text that begins with \"Entry not found\""},
    {"\x0a\x0e\x0a\x05<pad>"sv, FileContent::kSentencePiece, ""},
    {"\1\2\3\4", FileContent::kSafetensors, ""},
    {"version https://git-lfs.github.com/spec/v1\n", FileContent::kImage, "is a Git LFS pointer"},
    {"hello", FileContent::kImage, ""},
};

TEST(NameForeignContentTest, NamesWhatTheFirstBytesShow) {
  for (const ForeignCase& c : kForeign) {
    const std::string says = NameForeignContent(c.beginning, c.expected);
    if (c.says.empty()) {
      EXPECT_EQ(says, "") << c.beginning;
    } else {
      EXPECT_THAT(says, StartsWith(std::string(c.says))) << c.beginning;
    }
  }
}

TEST(NameForeignContentTest, ATarArchiveHasItsMarkInside) {
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  EXPECT_THAT(NameForeignContent(tar, FileContent::kSafetensors), StartsWith("is a tar archive"));
}

}  // namespace
}  // namespace wan
