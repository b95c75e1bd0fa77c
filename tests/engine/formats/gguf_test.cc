#include "engine/formats/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/formats/ggml_types.h"
#include "engine/formats/safetensors.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LittleEndian;
using ::testing::SizeIs;
using testing::TempFolder;
using testing::WriteFile;

std::string Text(std::string_view text) { return LittleEndian(text.size(), 8) + std::string(text); }

std::string Value(std::string_view key, uint32_t type, std::string_view bytes) {
  return Text(key) + LittleEndian(type, 4) + std::string(bytes);
}

struct Row {
  std::string name = "a";
  std::vector<uint64_t> extents = {32};  // the contiguous dimension first, as in the file
  uint32_t type = 8;                     // Q8_0
  uint64_t offset = 0;
};

std::string TableOf(const std::vector<Row>& rows) {
  std::string table;
  for (const Row& row : rows) {
    table += Text(row.name) + LittleEndian(row.extents.size(), 4);
    for (const uint64_t extent : row.extents) table += LittleEndian(extent, 8);
    table += LittleEndian(row.type, 4) + LittleEndian(row.offset, 8);
  }
  return table;
}

std::string GgufBytes(const std::vector<std::string>& values, const std::vector<Row>& rows,
                      std::string_view data) {
  std::string header =
      "GGUF" + LittleEndian(3, 4) + LittleEndian(rows.size(), 8) + LittleEndian(values.size(), 8);
  for (const std::string& value : values) header += value;
  header += TableOf(rows);
  header.resize((header.size() + 31) / 32 * 32);
  return header + std::string(data);
}

class GgufTest : public ::testing::Test {
 protected:
  absl::StatusOr<TensorFile> Read(std::string_view bytes) {
    WriteFile(path_, bytes);
    return ReadGguf(path_);
  }

  // The error that a file gives; it must name the file.
  std::string ErrorOf(std::string_view bytes, absl::StatusCode code = absl::StatusCode::kDataLoss) {
    const absl::Status status = Read(bytes).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
    return std::string(status.message());
  }

  TempFolder folder_;
  const std::string path_ = (folder_ / "model.gguf").string();
};

TEST_F(GgufTest, GivesNamesShapesMetadataAndBytes) {
  const auto file = Read(GgufBytes(
      {Value("general.architecture", 8, Text("wan")),
       Value("n", 9, LittleEndian(8, 4) + LittleEndian(2, 8) + Text("x") + Text("")),
       Value("m", 9, LittleEndian(4, 4) + LittleEndian(2, 8) + "abcdefgh"), Value("b", 7, "\x01")},
      {{"blocks", {32, 2}}, {"plain", {3}, 0, 96}}, std::string(108, 'D')));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata.at("general.architecture"), "wan");
  ASSERT_THAT(file->tensors, SizeIs(2));
  const StoredTensor& blocks = file->tensors[0];
  EXPECT_EQ(blocks.name, "blocks");
  EXPECT_THAT(blocks.shape, ElementsAre(2, 32));
  EXPECT_EQ(blocks.dtype, DType::kBFloat16);
  EXPECT_THAT(blocks.bytes, SizeIs(68));
  ASSERT_NE(blocks.decoder, nullptr);
  EXPECT_EQ(blocks.decoder->name(), "Q8_0");
  const StoredTensor& plain = file->tensors[1];
  EXPECT_EQ(plain.dtype, DType::kFloat32);
  EXPECT_EQ(plain.decoder, nullptr);
  EXPECT_THAT(plain.bytes, SizeIs(12));
}

// pack_files.py wrote random blocks of every type, and what the reference makes of them.
TEST_F(GgufTest, EveryTypeHasTheValuesOfTheReference) {
  const std::string path = WAN_CHECKPOINT_DIR "/../packed/types/types.gguf";
  const auto file = ReadGguf(path);
  const auto expected = ReadSafetensors(path + ".expected.safetensors");
  ASSERT_TRUE(file.ok() && expected.ok()) << file.status() << expected.status();
  ASSERT_EQ(file->tensors.size(), expected->tensors.size());
  std::map<std::string, const StoredTensor*> by_name;
  for (const StoredTensor& tensor : expected->tensors) by_name[tensor.name] = &tensor;
  for (const StoredTensor& tensor : file->tensors) {
    const StoredTensor& want = *by_name.at(tensor.name);
    EXPECT_EQ(tensor.shape, want.shape) << tensor.name;
    std::vector<std::byte> codes(tensor.bytes.size());
    ASSERT_TRUE(file->file->Read(tensor.bytes, codes.data()).ok());
    std::vector<uint16_t> values(want.bytes.size() / 2);
    ASSERT_NE(tensor.decoder, nullptr) << tensor.name;
    tensor.decoder->Decode(0, codes, values);
    EXPECT_EQ(std::memcmp(values.data(), want.bytes.data(), want.bytes.size()), 0) << tensor.name;
  }
}

TEST_F(GgufTest, ATypeThatIsNotReadIsNamed) {
  const auto unimplemented = absl::StatusCode::kUnimplemented;
  EXPECT_THAT(
      ErrorOf(GgufBytes({}, {{"a", {256}, 23}}, std::string(200, 'x')), unimplemented),
      HasSubstr("tensor a has the GGML type IQ4_XS, which is not read; take a file with F32, "
                "F16, BF16, Q8_0, Q6_K, Q5_K, Q4_K"));
  EXPECT_THAT(ErrorOf(GgufBytes({}, {{"a", {256}, 777}}, "x"), unimplemented),
              HasSubstr("tensor a has the GGML type number 777"));
}

TEST_F(GgufTest, OtherVersionsAndOrdersAreRefused) {
  const auto unimplemented = absl::StatusCode::kUnimplemented;
  const std::string rest(64, '\0');
  EXPECT_THAT(ErrorOf("GGUF" + LittleEndian(1, 4) + rest, unimplemented), HasSubstr("version 1"));
  EXPECT_THAT(ErrorOf("GGUF" + LittleEndian(0x03000000, 4) + rest, unimplemented),
              HasSubstr("big-endian"));
  EXPECT_THAT(ErrorOf("GGUF" + LittleEndian(0, 4) + rest, unimplemented), HasSubstr("version 0;"));
  EXPECT_THAT(ErrorOf("GGUF" + LittleEndian(0x100, 4) + rest, unimplemented),
              HasSubstr("version 256;"));
}

TEST_F(GgufTest, OtherFilesAreNamed) {
  EXPECT_THAT(ErrorOf("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("git lfs pull"));
  EXPECT_THAT(ErrorOf("<!DOCTYPE html><html>"), HasSubstr("HTML page"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("is empty"));
  EXPECT_THAT(ErrorOf("\x01\x02\x03"), HasSubstr("is not a GGUF file"));
}

// No length of the file is trusted: each of these once claims more than the file has.
TEST_F(GgufTest, HostileCountsLengthsAndOffsets) {
  const std::string data(68, 'D');
  constexpr uint64_t kHuge = ~uint64_t{0};
  const auto header = [](uint64_t tensors, uint64_t values) {
    return "GGUF" + LittleEndian(3, 4) + LittleEndian(tensors, 8) + LittleEndian(values, 8);
  };
  EXPECT_THAT(ErrorOf(header(kHuge, 0)), HasSubstr("tensors, for which the file is too short"));
  EXPECT_THAT(ErrorOf(header(0, kHuge)), HasSubstr("values of metadata, for which"));
  EXPECT_THAT(ErrorOf(header(0, 1) + LittleEndian(kHuge, 8) + data), HasSubstr("has a name of"));
  EXPECT_THAT(ErrorOf(GgufBytes({Value("k", 8, LittleEndian(kHuge, 8))}, {}, data)),
              HasSubstr("within its header"));
  EXPECT_THAT(
      ErrorOf(GgufBytes({Value("k", 9, LittleEndian(4, 4) + LittleEndian(kHuge, 8))}, {}, data)),
      HasSubstr("has an array of"));
  EXPECT_THAT(
      ErrorOf(GgufBytes({Value("k", 9, LittleEndian(8, 4) + LittleEndian(kHuge, 8))}, {}, data)),
      HasSubstr("within its header"));
  EXPECT_THAT(
      ErrorOf(GgufBytes({Value("k", 9, LittleEndian(9, 4) + LittleEndian(1, 8))}, {}, data)),
      HasSubstr("array of values of type 9"));
  EXPECT_THAT(ErrorOf(GgufBytes({Value("k", 99, "")}, {}, data)), HasSubstr("value of type 99"));
  EXPECT_THAT(ErrorOf(GgufBytes({Value("general.alignment", 4, LittleEndian(0, 4))}, {}, data)),
              HasSubstr("alignment 0"));
  EXPECT_THAT(ErrorOf(GgufBytes({}, {{"a", std::vector<uint64_t>(9, 1)}}, data)),
              HasSubstr("has 9 dimensions"));
  EXPECT_THAT(ErrorOf(GgufBytes({}, {{"a", {32, kHuge}}}, data)), HasSubstr("impossible shape"));
  EXPECT_THAT(ErrorOf(GgufBytes({}, {{"a", {uint64_t{1} << 40, uint64_t{1} << 40}}}, data)),
              HasSubstr("impossible shape"));
  EXPECT_THAT(ErrorOf(GgufBytes({}, {{"a", {31}}}, data)), HasSubstr("rows of 31 elements"));
  EXPECT_THAT(ErrorOf(GgufBytes({}, {{"a", {96}}}, data)), HasSubstr("there are only 68"));
  EXPECT_THAT(ErrorOf(GgufBytes({}, {{"a", {32}, 8, kHuge}}, data)),
              HasSubstr("there are only 68"));
  EXPECT_THAT(ErrorOf(GgufBytes({}, {{"a", {32}}, {"b", {32}, 8, 32}}, data)),
              HasSubstr("tensors a and b overlap"));
  EXPECT_THAT(ErrorOf(GgufBytes({}, {{"a", {32}}, {"a", {32}, 8, 34}}, data)),
              HasSubstr("tensor a occurs twice"));
}

TEST_F(GgufTest, AWrongOriginalShapeIsRefused) {
  const auto with = [](const std::string& array) {
    return GgufBytes({Value("comfy.gguf.orig_shape.a", 9, array)}, {{"a", {32, 2}}},
                     std::string(68, 'D'));
  };
  const auto shape = [](uint32_t rows, uint32_t columns) {
    return LittleEndian(5, 4) + LittleEndian(2, 8) + LittleEndian(rows, 4) +
           LittleEndian(columns, 4);
  };
  EXPECT_TRUE(Read(with(shape(4, 16))).ok());
  EXPECT_THAT(ErrorOf(with(shape(4, 17))), HasSubstr("which its original shape [4, 17]"));
  EXPECT_THAT(ErrorOf(with(shape(4, ~0U))), HasSubstr("original shape"));
  EXPECT_THAT(ErrorOf(with(LittleEndian(5, 4) + LittleEndian(900, 8))),
              HasSubstr("900 dimensions"));
  EXPECT_THAT(ErrorOf(with(LittleEndian(6, 4) + LittleEndian(0, 8))),
              HasSubstr("not an array of integers"));
}

// Wherever a file is cut, the reader says so.
TEST_F(GgufTest, EveryCutIsNoticed) {
  const std::string whole = GgufBytes({Value("general.architecture", 8, Text("wan"))},
                                      {{"a", {32}}}, std::string(34, 'D'));
  ASSERT_TRUE(Read(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(Read(whole.substr(0, size)).ok()) << size;
  }
}

// Damaged files give a typed error, or tensors whose blocks can be widened.
TEST_F(GgufTest, EveryDamagedFileIsAnErrorOrReadable) {
  const std::string sound = testing::ReadFile(WAN_CHECKPOINT_DIR "/../packed/types/types.gguf");
  std::mt19937 random(45);
  int readable = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string bytes = sound;
    // Most of the interesting bytes are in the header.
    const size_t end = round % 4 == 0 ? bytes.size() : 1200;
    for (int change = 0; change <= round % 3; ++change) {
      bytes[random() % end] = static_cast<char>(random());
    }
    const auto file = Read(bytes);
    if (!file.ok()) {
      const auto code = file.status().code();
      EXPECT_TRUE(code == absl::StatusCode::kDataLoss || code == absl::StatusCode::kUnimplemented)
          << file.status();
      continue;
    }
    ++readable;
    for (const StoredTensor& tensor : file->tensors) {
      if (tensor.decoder == nullptr) continue;
      const size_t blocks = tensor.bytes.size() / tensor.decoder->block_bytes();
      std::vector<uint16_t> values(blocks * tensor.decoder->block_elements());
      std::vector<std::byte> codes(tensor.bytes.size());
      ASSERT_TRUE(file->file->Read(tensor.bytes, codes.data()).ok());
      tensor.decoder->Decode(0, codes, values);
    }
  }
  EXPECT_GT(readable, 30);
}

TEST(GgmlTypesTest, EveryBlockTypeSaysWhatItIs) {
  EXPECT_EQ(FindGgmlType(12)->name, "Q4_K");
  EXPECT_FALSE(FindGgmlType(16)->IsRead());
  EXPECT_FALSE(FindGgmlType(4).has_value());
  EXPECT_THAT(ReadGgmlTypes(), HasSubstr("Q6_K"));
}

}  // namespace
}  // namespace wan
