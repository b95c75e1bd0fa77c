// Reads the pages of an SQLite database without SQLite, from a file that SQLite refuses. The format
// is that of https://sqlite.org/fileformat2.html.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace wan::server {

// NULL, an integer, a text or a blob. Other types do not occur in the store's tables.
using DatabaseValue = std::variant<std::monostate, int64_t, std::string>;

struct DatabaseRecord {
  int64_t rowid = 0;  // of a table with rowids
  std::vector<DatabaseValue> values;
};

// The place of a record: the page, and the offset of its cell.
struct CellPlace {
  uint32_t page = 0;
  uint32_t offset = 0;
};

// A page of a b-tree, as far as it is sound.
struct BtreePage {
  enum class Kind : uint8_t {
    kInteriorIndex = 2,
    kInteriorTable = 5,
    kLeafIndex = 10,
    kLeafTable = 13,
  };
  Kind kind = Kind::kLeafTable;
  std::vector<uint32_t> children;  // child pages of an interior page
  std::vector<CellPlace> cells;    // those with records; none in an interior page of a table
  bool damaged = false;            // whether a cell lies outside of the page
};

// Not thread-safe. Nothing that the file contains can make it read outside of the file.
class DatabasePages {
 public:
  // Maps the file, which must not change meanwhile, and reads the write-ahead log beside it. A
  // file without a sound header has pages of the log's size, or else of 4096 bytes.
  static absl::StatusOr<DatabasePages> Open(const std::filesystem::path& file);

  uint32_t count() const { return count_; }
  // How many frames of the write-ahead log are damaged although a later transaction is whole.
  int damaged_frames() const { return damaged_frames_; }

  // Returns the b-tree page of this number, from 1; nullopt if it is another kind of page.
  std::optional<BtreePage> ReadPage(uint32_t number) const;

  // The record of a cell; nothing if any part of it is damaged.
  std::optional<DatabaseRecord> ReadRecord(const CellPlace& place) const;

  // The pages of the freelist, as far as it can be followed.
  std::vector<uint32_t> FreePages() const;

 private:
  class Mapping;

  DatabasePages() = default;
  void ReadLog(std::string_view log);
  // The page's bytes, from the log or the file; empty if there is no such page.
  std::string_view Page(uint32_t number) const;
  size_t LocalBytes(size_t payload, bool table_leaf) const;

  std::shared_ptr<const Mapping> file_;
  std::shared_ptr<const Mapping> log_file_;
  std::unordered_map<uint32_t, std::string_view> from_log_;
  size_t page_bytes_ = 4096;
  size_t usable_bytes_ = 4096;
  uint32_t count_ = 0;
  int damaged_frames_ = 0;
};

}  // namespace wan::server
