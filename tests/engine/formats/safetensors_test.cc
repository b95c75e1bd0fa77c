#include "engine/formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::SafetensorsBytes;
using ::testing::SizeIs;
using testing::TempFolder;
using testing::WriteFile;

class SafetensorsTest : public ::testing::Test {
 protected:
  absl::StatusOr<TensorFile> Read(std::string_view bytes) {
    WriteFile(path_, bytes);
    return ReadSafetensors(path_);
  }

  // The error that a header over `data_size` bytes gives; it must name the file.
  std::string ErrorOf(std::string_view header, size_t data_size) {
    const absl::Status status =
        Read(SafetensorsBytes(header, std::string(data_size, 'x'))).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << header;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
    return std::string(status.message());
  }

  TempFolder folder_;
  const std::string path_ = (folder_ / "model.safetensors").string();
};

TEST_F(SafetensorsTest, GivesNamesShapesAndBytes) {
  const auto file = Read(SafetensorsBytes(
      R"({"__metadata__":{"format":"pt"},
          "b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},
          "a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},
          "none":{"dtype":"U8","shape":[0,7],"data_offsets":[16,16]}}   )",
      "AAAABBBBBBBBBBBB"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_THAT(file->tensors, SizeIs(3));
  const StoredTensor& a = file->tensors[0];
  const StoredTensor& b = file->tensors[1];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.dtype, DType::kFloat32);
  EXPECT_THAT(a.shape, IsEmpty());
  EXPECT_EQ(std::memcmp(a.bytes.data(), "AAAA", a.bytes.size()), 0);
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.dtype, DType::kBFloat16);
  EXPECT_THAT(b.shape, ::testing::ElementsAre(2, 3));
  ASSERT_THAT(b.bytes, SizeIs(12));
  EXPECT_EQ(std::memcmp(b.bytes.data(), "BBBBBBBBBBBB", 12), 0);
  EXPECT_THAT(file->tensors[2].bytes, IsEmpty());
}

TEST_F(SafetensorsTest, MappingOutlivesTheFileObject) {
  auto file =
      Read(SafetensorsBytes(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "abc"));
  ASSERT_TRUE(file.ok());
  const std::shared_ptr<const void> mapping = file->mapping;
  const std::span<const std::byte> bytes = file->tensors[0].bytes;
  file = absl::CancelledError();
  std::filesystem::remove(path_);
  EXPECT_EQ(std::memcmp(bytes.data(), "abc", 3), 0);
}

TEST_F(SafetensorsTest, MappingGoesWithItsLastOwner) {
  const auto is_mapped = [&] {
    return testing::ReadFile("/proc/self/maps").find(path_) != std::string::npos;
  };
  auto file =
      Read(SafetensorsBytes(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "abc"));
  EXPECT_TRUE(is_mapped());
  file = absl::CancelledError();
  EXPECT_FALSE(is_mapped());
}

TEST_F(SafetensorsTest, RefusesFilesThatAreTooShort) {
  EXPECT_THAT(std::string(Read("").status().message()), HasSubstr("is empty (0 bytes)"));
  EXPECT_THAT(std::string(Read("\1\2\3\4\5\6\7").status().message()), HasSubstr("7 bytes long"));
  EXPECT_THAT(std::string(Read(testing::LittleEndian(9, 8) + "{}").status().message()),
              HasSubstr("header of 9 bytes, but the file is 10 bytes long"));
  EXPECT_THAT(std::string(Read(testing::LittleEndian(~uint64_t{0}, 8) + "{}").status().message()),
              HasSubstr("more than the 100000000 bytes that are allowed"));
}

TEST_F(SafetensorsTest, SaysWhichFileIsNotThere) {
  const absl::Status status = ReadSafetensors((folder_ / "gone.safetensors").string()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("gone.safetensors"));
  EXPECT_THAT(std::string(ReadSafetensors(folder_.string()).status().message()),
              HasSubstr("is a folder; must be a file"));
}

TEST_F(SafetensorsTest, NamesFilesOfOtherKinds) {
  EXPECT_THAT(std::string(Read("version https://git-lfs.github.com/spec/v1\n").status().message()),
              HasSubstr(": is a Git LFS pointer, not the file: run git lfs pull"));
  EXPECT_THAT(std::string(Read("{\"error\": \"no\"}").status().message()),
              HasSubstr(": is a JSON text"));
}

TEST_F(SafetensorsTest, SaysThatAFileOfZerosIsNoSafetensorsFile) {
  EXPECT_THAT(std::string(Read(std::string(1000, '\0')).status().message()),
              HasSubstr(": is not a safetensors file, whose header would begin with {; download it "
                        "again"));
  EXPECT_THAT(ErrorOf("{\"a\":", 0), HasSubstr("(in the header): the file is damaged; download"));
}

TEST_F(SafetensorsTest, RefusesHeadersThatAreNoJson) {
  EXPECT_THAT(ErrorOf("{\"a\":", 0), HasSubstr("not valid JSON at byte"));
  EXPECT_THAT(ErrorOf("[]", 0), HasSubstr("is not a safetensors file"));
  EXPECT_THAT(ErrorOf("{} {}", 0), HasSubstr("not valid JSON at byte 4"));
  EXPECT_THAT(ErrorOf(R"({"a":")"
                      "\xff"
                      R"("})",
                      0),
              HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf("{\"a\":" + std::string(1000, '['), 0), HasSubstr("nested deeper than 64"));
}

TEST_F(SafetensorsTest, RefusesNamesThatOccurTwice) {
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                          "a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                      1),
              HasSubstr("\"a\" occurs twice"));
}

TEST_F(SafetensorsTest, RefusesMalformedEntries) {
  EXPECT_THAT(ErrorOf(R"({"a":5})", 0), HasSubstr("tensor a has no header of"));
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"U8","shape":[1]}})", 1),
              HasSubstr("tensor a has no header"));
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", 1),
              HasSubstr("tensor a has no header"));
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":8,"shape":[1],"data_offsets":[0,1]}})", 1),
              HasSubstr("tensor a has no dtype"));
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4),
              HasSubstr("tensor a has the unknown dtype F31"));
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1),
              HasSubstr("tensor a has no shape"));
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1),
              HasSubstr("tensor a has no shape"));
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1),
              HasSubstr("tensor a has no data_offsets"));
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}})", 1),
              HasSubstr("tensor a has no data_offsets"));
  EXPECT_THAT(ErrorOf(R"({"__metadata__":{"format":1}})", 0), HasSubstr("__metadata__"));
}

TEST_F(SafetensorsTest, RefusesSizesThatDoNotFitTheShape) {
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,20]}})", 20),
              HasSubstr("tensor a has 20 bytes, which is not [2, 3] of F32"));
  // 2^62 elements of 4 bytes are 2^64, or nothing.
  EXPECT_THAT(
      ErrorOf(R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0),
      HasSubstr("which is not"));
  EXPECT_THAT(
      ErrorOf(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
      HasSubstr("which is not"));
}

TEST_F(SafetensorsTest, RefusesDataThatIsCutOverlapsOrHasHoles) {
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 3),
              HasSubstr("tensor a ends at byte 4 of the data, but there are only 3"));
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                          "b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
                      7),
              HasSubstr("tensors a and b overlap"));
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                          "b":{"dtype":"U8","shape":[2],"data_offsets":[5,7]}})",
                      7),
              HasSubstr("hole of 1 bytes before tensor b"));
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 6),
              HasSubstr("2 bytes follow the last tensor a"));
  EXPECT_THAT(ErrorOf("{}", 1), HasSubstr("1 bytes follow the last tensor"));
}

class ShardedSafetensorsTest : public ::testing::Test {
 protected:
  void WriteShard(const std::string& file, const std::string& tensor) {
    WriteFile(folder_ / file,
              SafetensorsBytes(
                  "{\"" + tensor + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x"));
  }

  TensorFiles Read(std::string_view weight_map) {
    const std::string path = (folder_ / "model.safetensors.index.json").string();
    WriteFile(path, std::string("{\"weight_map\":").append(weight_map).append("}"));
    return ReadShardedSafetensors(path);
  }

  static std::string Only(const TensorFiles& files) {
    EXPECT_THAT(files.problems, SizeIs(1));
    return files.problems.empty() ? "" : std::string(files.problems.front().message());
  }

  TempFolder folder_;
};

TEST_F(ShardedSafetensorsTest, ReadsEveryShard) {
  WriteShard("1.safetensors", "a");
  WriteShard("2.safetensors", "b");
  const TensorFiles files = Read(R"({"a":"1.safetensors","b":"2.safetensors"})");
  EXPECT_THAT(files.problems, IsEmpty());
  ASSERT_THAT(files.files, SizeIs(2));
  EXPECT_EQ(files.files[0].tensors[0].name, "a");
  EXPECT_EQ(files.files[1].tensors[0].name, "b");
}

TEST_F(ShardedSafetensorsTest, NamesTheShardThatIsMissingAndReadsTheOthers) {
  WriteShard("2.safetensors", "b");
  const TensorFiles files = Read(R"({"a":"1.safetensors","b":"2.safetensors"})");
  EXPECT_THAT(Only(files), HasSubstr("/1.safetensors"));
  EXPECT_THAT(files.files, SizeIs(1));
}

TEST_F(ShardedSafetensorsTest, IndexAndShardsMustAgree) {
  WriteShard("1.safetensors", "a");
  WriteShard("2.safetensors", "b");
  EXPECT_THAT(Only(Read(R"({"a":"1.safetensors","c":"1.safetensors","b":"2.safetensors"})")),
              AllOf(HasSubstr("1.safetensors: tensor c is missing"), HasSubstr("index.json")));
  EXPECT_EQ(Read(R"({"a":"2.safetensors","b":"1.safetensors"})").problems.size(), 2u);
  WriteFile(folder_ / "2.safetensors",
            SafetensorsBytes(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                                 "b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                             "xy"));
  EXPECT_THAT(Only(Read(R"({"a":"1.safetensors","b":"2.safetensors"})")),
              HasSubstr("2.safetensors: tensor a is in this file, but not according to"));
}

TEST_F(ShardedSafetensorsTest, RefusesIndexesThatNameNoShards) {
  WriteShard("1.safetensors", "a");
  EXPECT_THAT(Only(Read("5")), HasSubstr("no weight_map"));
  EXPECT_THAT(Only(Read("{}")), HasSubstr("no weight_map"));
  EXPECT_THAT(Only(Read(R"({"a":1})")), HasSubstr("tensor a lies in \"\""));
  EXPECT_THAT(Only(Read(R"({"a":"1.bin"})")), HasSubstr("which is not the name of a shard"));
  EXPECT_THAT(Only(Read(R"({"a":"../1.safetensors"})")),
              HasSubstr("which is not the name of a shard"));
  EXPECT_THAT(Only(Read("{")), HasSubstr("not valid JSON"));
}

}  // namespace
}  // namespace wan
