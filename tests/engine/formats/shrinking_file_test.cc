// Files that somebody shortens while they are read: an error, and not the end of the process.
#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/formats/json_text.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/torch_archive.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

class ShrinkingFileTest : public ::testing::Test {
 protected:
  // Reads the file again and again while somebody writes it anew in place, as rsync --inplace does.
  void ReadWhileItShrinks(const std::string& content,
                          const std::function<absl::Status(const std::string& path)>& read) {
    testing::WriteFile(path_, content);
    ASSERT_TRUE(read(path_).ok()) << read(path_);
    constexpr int kRounds = 100;
    std::barrier both(2);  // begin and end each round with a whole file
    std::thread writer([&] {
      for (int i = 0; i < kRounds; ++i) {
        both.arrive_and_wait();
        testing::WriteFile(path_, content);
        both.arrive_and_wait();
      }
    });
    for (int i = 0; i < kRounds; ++i) {
      both.arrive_and_wait();
      const absl::Status status = read(path_);
      EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
      both.arrive_and_wait();
    }
    writer.join();
    EXPECT_TRUE(read(path_).ok()) << read(path_);
  }

  // A JSON object of many members.
  static std::string Members(const std::string& value) {
    std::string text = "{";
    for (int i = 0; i < 20'000; ++i)
      absl::StrAppend(&text, i == 0 ? "" : ",", "\"", i, "\":", value);
    return text + "}";
  }

  const testing::TempFolder folder_;
  const std::string path_ = folder_ / "file";
};

TEST_F(ShrinkingFileTest, Json) {
  ReadWhileItShrinks(Members("1"),
                     [](const std::string& path) { return ReadJsonObject(path).status(); });
}

TEST_F(ShrinkingFileTest, Safetensors) {
  ReadWhileItShrinks(testing::SafetensorsBytes("{\"__metadata__\":" + Members("\"x\"") + "}", ""),
                     [](const std::string& path) { return ReadSafetensors(path).status(); });
}

TEST_F(ShrinkingFileTest, TorchArchive) {
  std::vector<testing::ZipEntry> entries;
  entries.push_back(
      {.name = "a/data.pkl", .bytes = testing::pickle::Whole(testing::pickle::Dict({}))});
  // Records of no tensor, which come before the archive's directory.
  for (int i = 0; i < 5'000; ++i) entries.push_back({.name = absl::StrCat("a/", i), .bytes = "x"});
  ReadWhileItShrinks(testing::ZipBytes(entries),
                     [](const std::string& path) { return ReadTorchArchive(path).status(); });
}

}  // namespace
}  // namespace wan
