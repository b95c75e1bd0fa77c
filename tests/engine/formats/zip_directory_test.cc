#include "engine/formats/zip_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::HasSubstr;
using testing::LittleEndian;
using testing::ZipBytes;
using testing::ZipEntry;

const ReadPiece kCopy = [](std::span<const std::byte> part, std::byte* out) {
  std::copy(part.begin(), part.end(), out);
  return absl::OkStatus();
};

absl::StatusOr<ZipDirectory> Read(const std::string& archive) {
  return ReadZipDirectory(std::as_bytes(std::span(archive)), "a.pth", kCopy);
}

std::string ErrorOf(const std::string& archive) {
  const absl::Status status = Read(archive).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("a.pth: "));
  return std::string(status.message());
}

std::string TextOf(const ZipRecord& record) {
  return {reinterpret_cast<const char*>(record.bytes.data()), record.bytes.size()};
}

// `archive` with the little-endian `value` at `offset` from the first occurrence of `signature`.
std::string Patched(std::string archive, uint32_t signature, size_t offset, uint64_t value,
                    int bytes) {
  const size_t at = archive.find(LittleEndian(signature, 4));
  EXPECT_NE(at, std::string::npos);
  return archive.replace(at + offset, bytes, LittleEndian(value, bytes));
}

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator = 0x07064b50;

const std::vector<ZipEntry>& TwoEntries() {
  static const std::vector<ZipEntry> entries = {{.name = "m/a", .bytes = "first"},
                                                {.name = "m/b", .bytes = ""}};
  return entries;
}

TEST(ZipDirectoryTest, FindsRecordsInEveryForm) {
  std::vector<ZipEntry> with_extra64 = TwoEntries();
  with_extra64[0].sizes_in_extra64 = true;
  std::vector<ZipEntry> with_sizes_in_header = TwoEntries();
  with_sizes_in_header[1].flags = 0;
  for (const std::string& archive : {ZipBytes(TwoEntries()), ZipBytes(TwoEntries(), false),
                                     ZipBytes(with_extra64), ZipBytes(with_sizes_in_header)}) {
    const auto directory = Read(archive);
    ASSERT_TRUE(directory.ok()) << directory.status();
    ASSERT_EQ(directory->size(), 2u);
    EXPECT_EQ(TextOf(directory->at("m/a")), "first");
    EXPECT_EQ(TextOf(directory->at("m/b")), "");
  }
}

TEST(ZipDirectoryTest, RefusesWhatIsNoArchive) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("too short"));
  EXPECT_THAT(ErrorOf(std::string(100, 'x')), HasSubstr("does not end like a zip archive"));
  const std::string archive = ZipBytes(TwoEntries());
  for (size_t size = 0; size < archive.size(); ++size) ErrorOf(archive.substr(0, size));
  ErrorOf(archive + "x");
}

TEST(ZipDirectoryTest, RefusesCompressedEncryptedAndSplitArchives) {
  EXPECT_THAT(ErrorOf(ZipBytes({{.name = "a", .bytes = "x", .method = 8}})),
              HasSubstr("record a is compressed (method 8)"));
  EXPECT_THAT(ErrorOf(ZipBytes({{.name = "a", .bytes = "x", .flags = 0x0809}})),
              HasSubstr("record a is encrypted"));
  EXPECT_THAT(ErrorOf(Patched(ZipBytes(TwoEntries()), kCentral, 34, 1, 2)),
              HasSubstr("record m/a lies in another part"));
}

TEST(ZipDirectoryTest, RefusesEndRecordsThatContradictEachOther) {
  const std::string archive = ZipBytes(TwoEntries());
  EXPECT_THAT(ErrorOf(Patched(archive, kEnd, 4, 1, 2)), HasSubstr("end record"));
  EXPECT_THAT(ErrorOf(Patched(archive, kEnd, 10, 3, 2)), HasSubstr("end record"));
  EXPECT_THAT(ErrorOf(Patched(archive, kEnd, 20, 1, 2)), HasSubstr("end record"));
  EXPECT_THAT(ErrorOf(Patched(archive, kEnd, 12, 5, 4)), HasSubstr("contradict"));
  EXPECT_THAT(ErrorOf(Patched(archive, kEnd, 16, 5, 4)), HasSubstr("contradict"));
  EXPECT_THAT(ErrorOf(Patched(archive, kEnd64, 4, 45, 8)), HasSubstr("zip64 end record"));
  EXPECT_THAT(ErrorOf(Patched(archive, kEnd64, 24, 3, 8)), HasSubstr("zip64 end record"));
  EXPECT_THAT(ErrorOf(Patched(archive, kLocator, 8, 1, 8)), HasSubstr("locator"));
  EXPECT_THAT(ErrorOf(Patched(archive, kLocator, 16, 2, 4)), HasSubstr("locator"));
  const std::string without64 = ZipBytes(TwoEntries(), false);
  EXPECT_THAT(ErrorOf(Patched(without64, kEnd, 16, 5, 4)), HasSubstr("does not end where"));
  EXPECT_THAT(ErrorOf(Patched(without64, kEnd, 16, 0xfffffff0, 4)),
              HasSubstr("does not end where"));
  EXPECT_THAT(ErrorOf(Patched(Patched(without64, kEnd, 8, 3, 2), kEnd, 10, 3, 2)),
              HasSubstr("has 2 records, expected 3"));
}

TEST(ZipDirectoryTest, RefusesRecordsOutOfRange) {
  const std::string archive = ZipBytes(TwoEntries());
  EXPECT_THAT(ErrorOf(Patched(archive, kCentral, 42, 0xfffffffe, 4)),
              HasSubstr("record m/a has no header at byte 4294967294"));
  EXPECT_THAT(ErrorOf(Patched(Patched(archive, kCentral, 20, 500, 4), kCentral, 24, 500, 4)),
              HasSubstr("record m/a with 500 bytes does not end before the zip directory"));
  EXPECT_THAT(ErrorOf(Patched(archive, kCentral, 24, 4, 4)), HasSubstr("has two sizes"));
  // Says that the value stands in an extra field, which is not there.
  EXPECT_THAT(ErrorOf(Patched(archive, kCentral, 24, 0xffffffff, 4)), HasSubstr("extra field"));
  EXPECT_THAT(ErrorOf(Patched(archive, kCentral, 28, 500, 2)),
              HasSubstr("zip directory is damaged"));
}

TEST(ZipDirectoryTest, RefusesRecordsThatTheirHeaderContradicts) {
  const std::string archive = ZipBytes(TwoEntries());
  EXPECT_THAT(ErrorOf(Patched(archive, kLocal, 30, 'x', 1)), HasSubstr("disagree"));
  EXPECT_THAT(ErrorOf(Patched(archive, kLocal, 6, 0, 2)), HasSubstr("disagree"));
  EXPECT_THAT(ErrorOf(Patched(archive, kLocal, 8, 8, 2)), HasSubstr("disagree"));
  EXPECT_THAT(ErrorOf(Patched(archive, kLocal, 0, 0, 4)), HasSubstr("has no header"));
  std::vector<ZipEntry> sized = TwoEntries();
  sized[0].flags = 0;
  EXPECT_THAT(ErrorOf(ZipBytes(sized)), HasSubstr("disagree"));
}

TEST(ZipDirectoryTest, RefusesRecordsThatOverlapOrOccurTwice) {
  EXPECT_THAT(ErrorOf(ZipBytes({{.name = "a", .bytes = "x"}, {.name = "a", .bytes = "y"}})),
              HasSubstr("record a occurs twice"));
  // The first record's bytes are a whole second record.
  const std::string inner = ZipBytes({{.name = "b", .bytes = "x"}}, false);
  std::string archive =
      ZipBytes({{.name = "a", .bytes = inner.substr(0, 32)}, {.name = "b", .bytes = "x"}});
  const size_t second = archive.rfind(LittleEndian(kCentral, 4));
  archive.replace(second + 42, 4, LittleEndian(31, 4));
  EXPECT_THAT(ErrorOf(archive), HasSubstr("records a and b overlap"));
}

TEST(ZipDirectoryTest, ChecksumsAreComparedUnlessLeftOut) {
  const std::string bytes = "123456789";
  ZipRecord record{.bytes = std::as_bytes(std::span(bytes)), .crc32 = 0xcbf43926};
  EXPECT_TRUE(ReadZipRecord("r", record, "a.pth", kCopy).ok());
  record.crc32 ^= 1;
  EXPECT_EQ(ReadZipRecord("r", record, "a.pth", kCopy).status().message(),
            "a.pth: record r has another checksum than the archive says");
  record.crc32 = 0;
  EXPECT_TRUE(ReadZipRecord("r", record, "a.pth", kCopy).ok());
}

}  // namespace
}  // namespace wan
