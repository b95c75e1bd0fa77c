// Reads the directory of a zip archive that torch.save wrote. Its records are stored without
// compression, so the bytes of a record are a view of the mapped archive. All functions are
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/formats/mapped_file.h"

namespace wan {

struct ZipRecord {
  std::span<const std::byte> bytes;
  uint32_t crc32 = 0;
};

using ZipDirectory = std::map<std::string, ZipRecord, std::less<>>;

// Finds all records, also in a zip64 archive. The records are views of `archive`, which must
// outlive them, and of which only `read` reads; messages name `path`. The errors of `read`.
// DATA_LOSS unless the end record, the central directory and each record's own header agree,
// everything lies inside the archive, names are unique and records do not overlap. UNIMPLEMENTED
// for compressed and encrypted records and for archives of several parts.
absl::StatusOr<ZipDirectory> ReadZipDirectory(std::span<const std::byte> archive,
                                              std::string_view path, const ReadPiece& read);

// Returns a copy of the record's bytes. DATA_LOSS if they have another checksum than the directory.
absl::StatusOr<std::vector<std::byte>> ReadZipRecord(std::string_view name, const ZipRecord& record,
                                                     std::string_view path, const ReadPiece& read);

}  // namespace wan
