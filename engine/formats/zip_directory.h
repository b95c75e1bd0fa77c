// The directory of a zip archive as torch.save writes it: records are stored, not compressed, so
// that a mapped archive gives their bytes without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan {

struct ZipRecord {
  std::span<const std::byte> bytes;
  uint32_t crc32 = 0;
};

using ZipDirectory = std::map<std::string, ZipRecord, std::less<>>;

// Finds all records, zip64 included. DATA_LOSS unless everything agrees: end record, central
// directory and each record's own header, all in range, names unique, records disjoint.
// UNIMPLEMENTED for compressed and encrypted records and for archives of several parts. `path` is
// for messages; the records are views of `archive`.
absl::StatusOr<ZipDirectory> ReadZipDirectory(std::span<const std::byte> archive,
                                              std::string_view path);

// DATA_LOSS if the record's bytes do not have the checksum of the directory.
absl::Status CheckZipRecord(std::string_view name, const ZipRecord& record, std::string_view path);

}  // namespace wan
