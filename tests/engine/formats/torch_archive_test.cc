#include "engine/formats/torch_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::TempFolder;
using testing::TorchArchiveBytes;
using testing::WriteFile;
namespace pickle = testing::pickle;

// A tensor of four floats in storage 0.
std::string FourFloats() {
  return pickle::Tensor(pickle::Storage("FloatStorage", "0", 4), 0, {2, 2}, {2, 1});
}

class TorchArchiveTest : public ::testing::Test {
 protected:
  absl::StatusOr<TensorFile> ReadBytes(std::string_view bytes) {
    WriteFile(path_, bytes);
    return ReadTorchArchive(path_);
  }

  // A state dict of one tensor, "w", with these storages.
  absl::StatusOr<TensorFile> Read(const std::string& tensor,
                                  const std::vector<std::string>& storages) {
    return ReadBytes(TorchArchiveBytes(pickle::Whole(pickle::Dict({{"w", tensor}})), storages));
  }

  // The error must name the file.
  std::string ErrorOf(const absl::StatusOr<TensorFile>& file) {
    EXPECT_FALSE(file.ok());
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(path_));
    return std::string(file.status().message());
  }

  TempFolder folder_;
  const std::string path_ = (folder_ / "model.pth").string();
};

TEST_F(TorchArchiveTest, GivesTensorsOfEveryType) {
  const std::vector<std::tuple<const char*, DType, int>> types = {
      {"DoubleStorage", DType::kFloat64, 8}, {"FloatStorage", DType::kFloat32, 4},
      {"HalfStorage", DType::kFloat16, 2},   {"BFloat16Storage", DType::kBFloat16, 2},
      {"LongStorage", DType::kInt64, 8},     {"IntStorage", DType::kInt32, 4},
      {"ShortStorage", DType::kInt16, 2},    {"CharStorage", DType::kInt8, 1},
      {"ByteStorage", DType::kUInt8, 1},     {"BoolStorage", DType::kBool, 1},
  };
  for (const auto& [storage, dtype, size] : types) {
    const std::string content(3 * size, *storage);
    const auto file =
        Read(pickle::Tensor(pickle::Storage(storage, "0", 3), 0, {3}, {1}), {content});
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_THAT(file->tensors, SizeIs(1));
    EXPECT_EQ(file->tensors[0].name, "w");
    EXPECT_EQ(file->tensors[0].dtype, dtype) << storage;
    ASSERT_EQ(file->tensors[0].bytes.size(), content.size());
    EXPECT_EQ(std::memcmp(file->tensors[0].bytes.data(), content.data(), content.size()), 0);
  }
}

TEST_F(TorchArchiveTest, GivesPartsOfAStorage) {
  const std::string storage = pickle::Storage("ByteStorage", "0", 8);
  const auto file = ReadBytes(TorchArchiveBytes(
      pickle::Whole(pickle::Dict({{"a", pickle::Tensor(storage, 1, {2, 1, 3}, {3, 99, 1})},
                                  {"b", pickle::Tensor(storage, 7, {}, {})},
                                  {"c", pickle::Tensor(storage, 8, {0, 5}, {1, 1})}})),
      {"01234567"}));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_THAT(file->tensors, SizeIs(3));
  EXPECT_THAT(file->tensors[0].shape, ElementsAre(2, 1, 3));
  EXPECT_EQ(std::memcmp(file->tensors[0].bytes.data(), "123456", 6), 0);
  EXPECT_THAT(file->tensors[1].shape, IsEmpty());
  ASSERT_THAT(file->tensors[1].bytes, SizeIs(1));
  EXPECT_EQ(static_cast<char>(file->tensors[1].bytes[0]), '7');
  EXPECT_THAT(file->tensors[2].bytes, IsEmpty());
}

TEST_F(TorchArchiveTest, ReadsParametersAsTheirTensors) {
  const auto file =
      Read(pickle::Call("_rebuild_parameter", {FourFloats(), "\x88", pickle::EmptyOrderedDict()}),
           {std::string(16, 'x')});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->tensors[0].shape, ElementsAre(2, 2));
  EXPECT_THAT(ErrorOf(Read(pickle::Call("_rebuild_parameter", {FourFloats()}), {"x"})),
              HasSubstr("tensor w is a malformed parameter"));
}

TEST_F(TorchArchiveTest, RefusesWhatIsNoArchiveOfTorchSave) {
  EXPECT_THAT(ErrorOf(ReadBytes("")), HasSubstr("is empty (0 bytes)"));
  EXPECT_THAT(ErrorOf(ReadBytes(std::string("\x80\x02\x8a\x0a") + std::string(200, 'l'))),
              HasSubstr("is a pickle of Python, such as torch.save wrote before version 1.6"));
  EXPECT_THAT(ErrorOf(ReadBytes(testing::ZipBytes({{.name = "a/b", .bytes = "c"}}))),
              HasSubstr("no data.pkl"));
  EXPECT_THAT(ErrorOf(ReadBytes(testing::ZipBytes(
                  {{.name = "a/data.pkl", .bytes = ""}, {.name = "b/data.pkl", .bytes = ""}}))),
              HasSubstr("more than one data.pkl"));
  const absl::Status absent = ReadTorchArchive((folder_ / "gone.pth").string()).status();
  EXPECT_EQ(absent.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(absent.message()), HasSubstr("gone.pth"));
}

TEST_F(TorchArchiveTest, RefusesBigEndianArchives) {
  const std::string whole = pickle::Whole(pickle::Dict({{"w", FourFloats()}}));
  const auto file = ReadBytes(TorchArchiveBytes(whole, {std::string(16, 'x')}, "big"));
  EXPECT_EQ(file.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(ErrorOf(file), HasSubstr("byteorder says \"big\""));
}

TEST_F(TorchArchiveTest, RefusesPicklesThatAreNoStateDict) {
  EXPECT_THAT(ErrorOf(ReadBytes(TorchArchiveBytes(pickle::Whole("K\x05"), {}))),
              HasSubstr("holds a value of kind integer, expected a dict"));
  EXPECT_THAT(ErrorOf(ReadBytes(TorchArchiveBytes(pickle::Whole("}K\x05Ns"), {}))),
              HasSubstr("a tensor's name is of kind integer"));
  EXPECT_THAT(ErrorOf(Read("K\x05", {})), HasSubstr("tensor w is of kind integer"));
  EXPECT_THAT(ErrorOf(Read(pickle::Dict({}), {})), HasSubstr("tensor w is of kind dict"));
  EXPECT_THAT(ErrorOf(Read(pickle::Global("os", "system"), {})),
              HasSubstr("model/data.pkl: byte 10: global \"os system\""));
  const std::string twice = pickle::Whole(pickle::Dict({{"w", FourFloats()}, {"w", FourFloats()}}));
  EXPECT_THAT(ErrorOf(ReadBytes(TorchArchiveBytes(twice, {std::string(16, 'x')}))),
              HasSubstr("tensor w occurs twice"));
}

TEST_F(TorchArchiveTest, RefusesMalformedTensors) {
  const std::string storage = pickle::Storage("ByteStorage", "0", 4);
  const std::string hooks = pickle::EmptyOrderedDict();
  const auto tensor = [&](const std::vector<std::string>& arguments) {
    return Read(pickle::Call("_rebuild_tensor_v2", arguments), {"wxyz"});
  };
  const std::string four = pickle::Integers({4}), one = pickle::Integers({1});
  ASSERT_TRUE(tensor({storage, pickle::Integer(0), four, one, "\x89", hooks}).ok());
  EXPECT_THAT(ErrorOf(tensor({storage, pickle::Integer(0), four, one})),
              HasSubstr("tensor w does not have the arguments"));
  EXPECT_THAT(ErrorOf(tensor({storage, "N", four, one, "\x89", hooks})),
              HasSubstr("tensor w does not have the arguments"));
  EXPECT_THAT(ErrorOf(tensor({storage, pickle::Integer(0), "N", one, "\x89", hooks})),
              HasSubstr("tensor w has a malformed size"));
  EXPECT_THAT(ErrorOf(tensor({storage, pickle::Integer(0), four, "N", "\x89", hooks})),
              HasSubstr("tensor w has a malformed size"));
  EXPECT_THAT(
      ErrorOf(tensor({storage, pickle::Integer(0), four, pickle::Integers({2, 1}), "\x89", hooks})),
      HasSubstr("tensor w has a malformed size"));
  EXPECT_THAT(
      ErrorOf(tensor({storage, pickle::Integer(0), pickle::Integers({-4}), one, "\x89", hooks})),
      HasSubstr("tensor w has a malformed size"));
  EXPECT_THAT(ErrorOf(tensor({"N", pickle::Integer(0), four, one, "\x89", hooks})),
              HasSubstr("tensor w has no storage"));
}

TEST_F(TorchArchiveTest, RefusesTensorsBeyondTheirStorage) {
  const std::string storage = pickle::Storage("FloatStorage", "0", 4);
  const std::vector<std::string> content = {std::string(16, 'x')};
  for (const auto& [offset, shape, stride] :
       {std::tuple(0, std::vector{5}, std::vector{1}),
        std::tuple(1, std::vector{4}, std::vector{1}),
        std::tuple(5, std::vector{0}, std::vector{1}),
        std::tuple(-1, std::vector{1}, std::vector{1}),
        std::tuple(0, std::vector{INT32_MAX, INT32_MAX}, std::vector{INT32_MAX, 1})}) {
    EXPECT_THAT(ErrorOf(Read(pickle::Tensor(storage, offset, shape, stride), content)),
                HasSubstr("reaches beyond its storage of 4 elements"))
        << offset;
  }
  EXPECT_THAT(ErrorOf(Read(pickle::Tensor(storage, 0, {INT32_MAX, INT32_MAX, INT32_MAX}, {1, 1, 1}),
                           content)),
              HasSubstr("malformed size"));
}

TEST_F(TorchArchiveTest, RefusesTensorsThatAreNotContiguous) {
  const std::string storage = pickle::Storage("ByteStorage", "0", 6);
  for (const auto& stride : {std::vector{1, 2}, std::vector{0, 1}, std::vector{4, 1}}) {
    const auto file = Read(pickle::Tensor(storage, 0, {2, 3}, stride), {"abcdef"});
    EXPECT_EQ(file.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(ErrorOf(file), HasSubstr("tensor w is not contiguous"));
  }
}

TEST_F(TorchArchiveTest, RefusesStoragesThatDoNotFit) {
  const auto read = [&](const std::string& storage, const std::vector<std::string>& storages) {
    return Read(pickle::Tensor(storage, 0, {1}, {1}), storages);
  };
  EXPECT_THAT(ErrorOf(read(pickle::Storage("FloatStorage", "7", 4), {std::string(16, 'x')})),
              HasSubstr("tensor w needs record model/data/7, which is missing"));
  EXPECT_THAT(ErrorOf(read(pickle::Storage("FloatStorage", "0", 4), {std::string(15, 'x')})),
              HasSubstr("tensor w needs 4 elements of F32, but record model/data/0 has 15 bytes"));
  EXPECT_THAT(ErrorOf(read(pickle::Storage("FloatStorage", "0", 5), {std::string(16, 'x')})),
              HasSubstr("tensor w needs 5 elements"));
  EXPECT_THAT(ErrorOf(read(pickle::Storage("FloatStorage", "0", -4), {std::string(16, 'x')})),
              HasSubstr("tensor w needs -4 elements"));
  EXPECT_THAT(ErrorOf(read(pickle::Storage("QInt8Storage", "0", 4), {std::string(16, 'x')})),
              HasSubstr("tensor w has a storage of type torch QInt8Storage"));
  EXPECT_THAT(ErrorOf(read(pickle::Storage("ByteStorage", "0", 1), {"x", "y"})),
              HasSubstr("record model/data/1 belongs to no tensor"));
}

TEST_F(TorchArchiveTest, ComparesThePicklesChecksum) {
  std::string archive =
      TorchArchiveBytes(pickle::Whole(pickle::Dict({{"w", FourFloats()}})), {std::string(16, 'x')});
  // crc32 of the first record of the directory; 0 says that it was not computed.
  const size_t central = archive.find(testing::LittleEndian(0x02014b50, 4));
  archive[central + 16] = 1;
  EXPECT_THAT(ErrorOf(ReadBytes(archive)), HasSubstr("record data.pkl has another checksum"));
}

// Sizes and offsets beyond 32 bits. The file is sparse: it takes no room on the disk.
TEST_F(TorchArchiveTest, ReadsArchivesBeyondFourGibibytes) {
  constexpr uint64_t kBig = (uint64_t{1} << 32) + 4096;
  using testing::LittleEndian;
  const std::string long_count = "\x8a\x05" + LittleEndian(kBig, 5);
  const std::string big =
      pickle::Call("_rebuild_tensor_v2",
                   {pickle::Tuple({pickle::Text("storage"), pickle::Global("torch", "ByteStorage"),
                                   pickle::Text("0"), pickle::Text("cpu"), long_count}) +
                        "Q",
                    pickle::Integer(0), long_count + "\x85", pickle::Integers({1}), "\x89",
                    pickle::EmptyOrderedDict()});
  const std::string small = pickle::Tensor(pickle::Storage("ByteStorage", "1", 5), 0, {5}, {1});
  const std::string data = pickle::Whole(pickle::Dict({{"big", big}, {"small", small}}));

  struct Record {
    std::string name;
    std::string head;  // of its bytes
    uint64_t size;
    uint64_t offset;
  };
  std::vector<Record> records = {{"m/data.pkl", data, data.size(), 0},
                                 {"m/data/0", "BIG", kBig, 0},
                                 {"m/data/1", "small", 5, 0}};
  std::ofstream file(path_, std::ios::binary);
  uint64_t position = 0;
  const auto write = [&](const std::string& bytes) {
    file.seekp(static_cast<std::streamoff>(position));
    file << bytes;
    position += bytes.size();
  };
  for (Record& record : records) {
    record.offset = position;
    write(LittleEndian(0x04034b50, 4) + LittleEndian(0, 2) + LittleEndian(0x0808, 2) +
          LittleEndian(0, 18) + LittleEndian(record.name.size(), 2) + LittleEndian(0, 2) +
          record.name);
    const uint64_t begin = position;
    write(record.head);
    position = begin + record.size;
  }
  const uint64_t directory = position;
  for (const Record& record : records) {
    const std::string extra = LittleEndian(1, 2) + LittleEndian(24, 2) +
                              LittleEndian(record.size, 8) + LittleEndian(record.size, 8) +
                              LittleEndian(record.offset, 8);
    write(LittleEndian(0x02014b50, 4) + LittleEndian(0, 4) + LittleEndian(0x0808, 2) +
          LittleEndian(0, 10) + LittleEndian(0xffffffff, 4) + LittleEndian(0xffffffff, 4) +
          LittleEndian(record.name.size(), 2) + LittleEndian(extra.size(), 2) +
          LittleEndian(0, 10) + LittleEndian(0xffffffff, 4) + record.name + extra);
  }
  const uint64_t end = position;
  write(LittleEndian(0x06064b50, 4) + LittleEndian(44, 8) + LittleEndian(0, 12) +
        LittleEndian(3, 8) + LittleEndian(3, 8) + LittleEndian(end - directory, 8) +
        LittleEndian(directory, 8) + LittleEndian(0x07064b50, 4) + LittleEndian(0, 4) +
        LittleEndian(end, 8) + LittleEndian(1, 4) + LittleEndian(0x06054b50, 4) +
        LittleEndian(0, 4) + LittleEndian(3, 2) + LittleEndian(3, 2) +
        LittleEndian(end - directory, 4) + LittleEndian(0xffffffff, 4) + LittleEndian(0, 2));
  file.close();
  ASSERT_TRUE(file.good());

  const auto read = ReadTorchArchive(path_);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_THAT(read->tensors, SizeIs(2));
  EXPECT_THAT(read->tensors[0].shape, ElementsAre(static_cast<int64_t>(kBig)));
  EXPECT_EQ(read->tensors[0].bytes.size(), kBig);
  EXPECT_EQ(std::memcmp(read->tensors[0].bytes.data(), "BIG", 3), 0);
  EXPECT_EQ(read->tensors[0].bytes.back(), std::byte{0});
  EXPECT_EQ(std::memcmp(read->tensors[1].bytes.data(), "small", 5), 0);
}

}  // namespace
}  // namespace wan
