#include "engine/formats/zip_directory.h"

#include <zlib.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/formats/byte_reader.h"
#include "engine/formats/file_errors.h"

namespace wan {
namespace {

// The names, and the sizes of fields, are those of PKWARE's APPNOTE.TXT, section 4.3.
constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kCentralHeader = 0x02014b50;
constexpr uint32_t kEndRecord = 0x06054b50;
constexpr uint32_t kEndRecord64 = 0x06064b50;
constexpr uint32_t kEndLocator64 = 0x07064b50;
constexpr uint64_t kEndRecordSize = 22;
constexpr uint64_t kEndLocator64Size = 20;
constexpr uint64_t kEndRecord64Size = 56;
constexpr uint64_t kLocalHeaderSize = 30;
// torch.save uses the extra field to align records to 64 bytes.
constexpr uint64_t kUsualExtraSize = 128;
constexpr uint16_t kExtra64 = 0x0001;
constexpr uint16_t kEncrypted = 0x0001;
constexpr uint16_t kSizesFollow = 0x0008;
// If a 32-bit field has the value kIn64, or a 16-bit field the value kIn64Short, the zip64 record
// has the real value.
constexpr uint32_t kIn64 = 0xffffffff;
constexpr uint16_t kIn64Short = 0xffff;

struct End {
  uint64_t entries = 0;
  uint64_t directory_offset = 0;
  uint64_t directory_size = 0;
};

struct Entry {
  std::string name;
  uint16_t flags = 0;
  uint32_t crc32 = 0;
  uint64_t size = 0;
  uint64_t header_offset = 0;
};

struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
  const std::string* name = nullptr;
};

class DirectoryReader {
 public:
  DirectoryReader(std::span<const std::byte> archive, std::string_view path, const ReadPiece& read)
      : archive_(archive), path_(path), read_(read) {}

  absl::StatusOr<ZipDirectory> Read() {
    const absl::StatusOr<End> end = ReadEnd();
    if (!end.ok()) return end.status();
    const absl::StatusOr<std::vector<Entry>> entries = ReadEntries(*end);
    if (!entries.ok()) return entries.status();
    ZipDirectory directory;
    std::vector<Extent> extents;
    for (const Entry& entry : *entries) {
      absl::StatusOr<Extent> extent = ReadLocalHeader(entry, end->directory_offset);
      if (!extent.ok()) return extent.status();
      extents.push_back(*extent);
      const ZipRecord record{.bytes = archive_.subspan(extent->end - entry.size, entry.size),
                             .crc32 = entry.crc32};
      if (!directory.emplace(entry.name, record).second) {
        return Wrong(absl::StrCat("record ", Printable(entry.name), " occurs twice"));
      }
    }
    std::sort(extents.begin(), extents.end(),
              [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < extents.size(); ++i) {
      if (extents[i].begin < extents[i - 1].end) {
        return Wrong(absl::StrCat("records ", Printable(*extents[i - 1].name), " and ",
                                  Printable(*extents[i].name), " overlap"));
      }
    }
    return directory;
  }

 private:
  absl::Status Wrong(std::string_view what) const { return Damaged(path_, what); }

  // Returns at most `size` bytes of the archive, starting at `position` and ending at `limit` at
  // the latest.
  absl::StatusOr<std::vector<std::byte>> Piece(uint64_t position, uint64_t size,
                                               uint64_t limit) const {
    position = std::min(position, limit);
    std::vector<std::byte> piece(std::min(size, limit - position));
    if (absl::Status status = read_(archive_.subspan(position, piece.size()), piece.data());
        !status.ok()) {
      return status;
    }
    return piece;
  }

  absl::StatusOr<End> ReadEnd() const {
    // The end record must be the last thing in the file, because torch.save writes no comment after
    // it.
    if (archive_.size() < kEndRecordSize) return Wrong("too short for a zip archive");
    const uint64_t position = archive_.size() - kEndRecordSize;
    const auto record = Piece(position, kEndRecordSize, archive_.size());
    if (!record.ok()) return record.status();
    ByteReader reader(*record);
    if (reader.Read<uint32_t>() != kEndRecord) {
      return Wrong("does not end like a zip archive: cut off, or not written by torch.save");
    }
    const auto disk = reader.Read<uint16_t>();
    const auto directory_disk = reader.Read<uint16_t>();
    const auto entries_here = reader.Read<uint16_t>();
    const auto entries = reader.Read<uint16_t>();
    const auto size = reader.Read<uint32_t>();
    const auto offset = reader.Read<uint32_t>();
    const auto comment = reader.Read<uint16_t>();
    if (disk != 0 || directory_disk != 0 || entries_here != entries || comment != 0) {
      return Wrong("end record of the zip archive is damaged");
    }
    End end{.entries = entries, .directory_offset = offset, .directory_size = size};
    uint64_t directory_end = position;
    const auto before =
        Piece(position - std::min(position, kEndLocator64Size), kEndLocator64Size, archive_.size());
    if (!before.ok()) return before.status();
    ByteReader locator(*before);
    if (locator.Read<uint32_t>() == kEndLocator64) {
      const auto locator_disk = locator.Read<uint32_t>();
      directory_end = locator.Read<uint64_t>();
      const auto disks = locator.Read<uint32_t>();
      // Compare by subtraction, because a sum could overflow.
      if (locator_disk != 0 || disks != 1 ||
          directory_end != position - kEndLocator64Size - kEndRecord64Size) {
        return Wrong("zip64 locator is damaged");
      }
      absl::StatusOr<End> end64 = ReadEnd64(directory_end);
      if (!end64.ok()) return end64;
      const bool agree = (entries == kIn64Short || entries == end64->entries) &&
                         (size == kIn64 || size == end64->directory_size) &&
                         (offset == kIn64 || offset == end64->directory_offset);
      if (!agree) return Wrong("end records of the zip archive contradict each other");
      end = *end64;
    }
    if (end.directory_offset > directory_end ||
        end.directory_size != directory_end - end.directory_offset) {
      return Wrong("zip directory does not end where the end record begins");
    }
    return end;
  }

  absl::StatusOr<End> ReadEnd64(uint64_t position) const {
    const auto record = Piece(position, kEndRecord64Size, archive_.size());
    if (!record.ok()) return record.status();
    ByteReader reader(*record);
    const auto signature = reader.Read<uint32_t>();
    const auto size_of_rest = reader.Read<uint64_t>();
    reader.Take(4);  // skips the versions of zip
    const auto disk = reader.Read<uint32_t>();
    const auto directory_disk = reader.Read<uint32_t>();
    const auto entries_here = reader.Read<uint64_t>();
    End end;
    end.entries = reader.Read<uint64_t>();
    end.directory_size = reader.Read<uint64_t>();
    end.directory_offset = reader.Read<uint64_t>();
    if (reader.failed() || signature != kEndRecord64 || size_of_rest != kEndRecord64Size - 12 ||
        disk != 0 || directory_disk != 0 || entries_here != end.entries) {
      return Wrong("zip64 end record is damaged");
    }
    return end;
  }

  absl::StatusOr<std::vector<Entry>> ReadEntries(const End& end) const {
    const auto directory = Piece(end.directory_offset, end.directory_size, archive_.size());
    if (!directory.ok()) return directory.status();
    ByteReader reader(*directory);
    std::vector<Entry> entries;
    while (!reader.AtEnd()) {
      absl::StatusOr<Entry> entry = ReadCentralHeader(reader);
      if (!entry.ok()) return entry.status();
      entries.push_back(*std::move(entry));
    }
    if (entries.size() != end.entries) {
      return Wrong(
          absl::StrCat("zip directory has ", entries.size(), " records, expected ", end.entries));
    }
    return entries;
  }

  absl::StatusOr<Entry> ReadCentralHeader(ByteReader& reader) const {
    const uint64_t position = reader.position();
    const auto signature = reader.Read<uint32_t>();
    reader.Take(4);  // skips the versions of zip
    Entry entry;
    entry.flags = reader.Read<uint16_t>();
    const auto method = reader.Read<uint16_t>();
    reader.Take(4);  // skips the time of the file
    entry.crc32 = reader.Read<uint32_t>();
    const auto stored_size = reader.Read<uint32_t>();
    const auto size = reader.Read<uint32_t>();
    const auto name_length = reader.Read<uint16_t>();
    const auto extra_length = reader.Read<uint16_t>();
    const auto comment_length = reader.Read<uint16_t>();
    const auto disk = reader.Read<uint16_t>();
    reader.Take(6);  // skips the attributes of the file
    const auto header_offset = reader.Read<uint32_t>();
    entry.name = std::string(reader.ReadText(name_length));
    ByteReader extra(reader.Take(extra_length));
    reader.Take(comment_length);
    if (reader.failed() || signature != kCentralHeader) {
      return Wrong(absl::StrCat("zip directory is damaged at its byte ", position));
    }
    const std::string record = absl::StrCat("record ", Printable(entry.name));
    if (disk != 0) return Unsupported(path_, absl::StrCat(record, " lies in another part"));
    if ((entry.flags & kEncrypted) != 0) {
      return Unsupported(path_, absl::StrCat(record, " is encrypted"));
    }
    if (method != 0) {
      return Unsupported(path_, absl::StrCat(record, " is compressed (method ", method,
                                             "); torch.save stores records as they are"));
    }
    uint64_t stored_size64 = stored_size;
    entry.size = size;
    entry.header_offset = header_offset;
    if (!ReadExtra64(extra, {&entry.size, &stored_size64, &entry.header_offset})) {
      return Wrong(absl::StrCat(record, " has a damaged extra field"));
    }
    if (entry.size != stored_size64) {
      return Wrong(absl::StrCat(record, " is stored, but has two sizes: ", entry.size, " and ",
                                stored_size64));
    }
    return entry;
  }

  // Replaces each of `fields` (in the format's order) whose value refers to the zip64 extra field.
  // Returns false if the extra field lacks a value or is malformed.
  static bool ReadExtra64(ByteReader& extra, std::initializer_list<uint64_t*> fields) {
    std::optional<ByteReader> extra64;
    while (!extra.AtEnd()) {
      const auto id = extra.Read<uint16_t>();
      const auto size = extra.Read<uint16_t>();
      const std::span<const std::byte> content = extra.Take(size);
      if (id == kExtra64) extra64.emplace(content);
    }
    if (extra.failed()) return false;
    for (uint64_t* const field : fields) {
      if (*field != kIn64) continue;
      if (!extra64.has_value()) return false;
      *field = extra64->Read<uint64_t>();
    }
    return !extra64.has_value() || !extra64->failed();
  }

  // Reads the header in front of a record. Returns where the header and the record's bytes are.
  absl::StatusOr<Extent> ReadLocalHeader(const Entry& entry, uint64_t limit) const {
    const std::string record = absl::StrCat("record ", Printable(entry.name));
    const auto header = ReadHeader(entry, limit);
    if (!header.ok()) return header.status();
    ByteReader reader(*header);
    const auto signature = reader.Read<uint32_t>();
    reader.Take(2);  // skips the version of zip
    const auto flags = reader.Read<uint16_t>();
    const auto method = reader.Read<uint16_t>();
    reader.Take(8);  // skips the time and the crc32
    const auto stored_size = reader.Read<uint32_t>();
    const auto size = reader.Read<uint32_t>();
    const auto name_length = reader.Read<uint16_t>();
    const auto extra_length = reader.Read<uint16_t>();
    const std::string_view name = reader.ReadText(name_length);
    reader.Take(extra_length);
    if (reader.failed() || signature != kLocalHeader) {
      return Wrong(absl::StrCat(record, " has no header at byte ", entry.header_offset));
    }
    const auto agrees = [&](uint32_t value) { return value == kIn64 || value == entry.size; };
    // If kSizesFollow is set, a streaming program wrote the archive and left out the sizes here.
    const bool sizes_agree = (flags & kSizesFollow) != 0 || (agrees(stored_size) && agrees(size));
    if (name != entry.name || flags != entry.flags || method != 0 || !sizes_agree) {
      return Wrong(absl::StrCat(record, ": header and directory of the archive disagree"));
    }
    const uint64_t begin = entry.header_offset + reader.position();
    if (entry.size > limit - begin) {
      return Wrong(absl::StrCat(record, " with ", entry.size,
                                " bytes does not end before the zip directory"));
    }
    return Extent{.begin = entry.header_offset, .end = begin + entry.size, .name = &entry.name};
  }

  // Reads the header in front of a record with its name and extra field, ending at `limit` at the
  // latest.
  absl::StatusOr<std::vector<std::byte>> ReadHeader(const Entry& entry, uint64_t limit) const {
    // Most names and extra fields are so short that the first read returns all of the header.
    uint64_t size = kLocalHeaderSize + entry.name.size() + kUsualExtraSize;
    for (;;) {
      absl::StatusOr<std::vector<std::byte>> header = Piece(entry.header_offset, size, limit);
      if (!header.ok() || header->size() < kLocalHeaderSize) return header;
      ByteReader lengths(*header, kLocalHeaderSize - 4);
      const uint64_t needed =
          kLocalHeaderSize + lengths.Read<uint16_t>() + lengths.Read<uint16_t>();
      if (needed <= header->size() || header->size() < size) return header;
      size = needed;
    }
  }

  const std::span<const std::byte> archive_;
  const std::string_view path_;
  const ReadPiece& read_;
};

}  // namespace

absl::StatusOr<ZipDirectory> ReadZipDirectory(std::span<const std::byte> archive,
                                              std::string_view path, const ReadPiece& read) {
  return DirectoryReader(archive, path, read).Read();
}

absl::StatusOr<std::vector<std::byte>> ReadZipRecord(std::string_view name, const ZipRecord& record,
                                                     std::string_view path, const ReadPiece& read) {
  std::vector<std::byte> bytes(record.bytes.size());
  if (absl::Status status = read(record.bytes, bytes.data()); !status.ok()) return status;
  // torch.save can leave out checksums; it then writes zero.
  if (record.crc32 == 0) return bytes;
  const auto found =
      static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  if (found == record.crc32) return bytes;
  return Damaged(path, absl::StrCat("record ", Printable(name), " has another checksum than the ",
                                    "archive says"));
}

}  // namespace wan
