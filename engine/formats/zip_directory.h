// Reads the directory of a zip archive that torch.save wrote. Such an archive's records are not
// compressed, so their bytes are views of the mapped archive. All functions are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/mapped_file.h"

namespace wan {

struct ZipRecord {
  std::span<const std::byte> bytes;
  uint32_t crc32 = 0;
};

using ZipDirectory = std::map<std::string, ZipRecord, std::less<>>;

// Finds all records of the archive; zip64 is supported. The records are views of `archive`, which
// must outlive them. Bytes are accessed only through `read`. Messages call the archive `path`.
// Errors of `read` are returned unchanged. DATA_LOSS unless the end record, the central directory
// and the header of each record agree, everything is inside of the archive, names are unique and
// records do not overlap. UNIMPLEMENTED if a record is compressed or encrypted, or if the archive
// has several parts.
absl::StatusOr<ZipDirectory> ReadZipDirectory(std::span<const std::byte> archive,
                                              std::string_view path, const ReadPiece& read);

// Returns a copy of the record's bytes. DATA_LOSS if the checksum of the bytes differs from that in
// the directory.
absl::StatusOr<std::vector<std::byte>> ReadZipRecord(std::string_view name, const ZipRecord& record,
                                                     std::string_view path, const ReadPiece& read);

}  // namespace wan
