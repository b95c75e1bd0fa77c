// Reads the pages of an SQLite database that SQLite itself refuses to open. The format is described
// in https://sqlite.org/fileformat2.html.
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

// The value of a column: NULL, an integer, a text or a blob. Other types do not occur in the
// store's tables.
using DatabaseValue = std::variant<std::monostate, int64_t, std::string>;

struct DatabaseRecord {
  int64_t rowid = 0;  // 0 for a record of a table without rowids
  std::vector<DatabaseValue> values;
};

// The position of a record in the file: the page, and the offset of the record's cell in the page.
struct CellPlace {
  uint32_t page = 0;
  uint32_t offset = 0;
};

// The undamaged parts of a b-tree page.
struct BtreePage {
  enum class Kind : uint8_t {
    kInteriorIndex = 2,
    kInteriorTable = 5,
    kLeafIndex = 10,
    kLeafTable = 13,
  };
  Kind kind = Kind::kLeafTable;
  std::vector<uint32_t> children;  // numbers of the child pages; a leaf page has none
  std::vector<CellPlace> cells;    // cells with records; the interior pages of tables have none
  bool damaged = false;            // whether a cell lies outside the page
};

// Not thread-safe. Never reads outside the mapped file, whatever the file contains.
class DatabasePages {
 public:
  // Maps the file, and reads the write-ahead log in the file's folder. Nobody may change the file
  // while the object exists. If the file's header is damaged, takes the page size from the log; if
  // there is no log, assumes 4096.
  static absl::StatusOr<DatabasePages> Open(const std::filesystem::path& file);

  uint32_t count() const { return count_; }
  // Number of damaged frames in the write-ahead log before its last complete transaction.
  int damaged_frames() const { return damaged_frames_; }

  // Returns the b-tree page with this number (counted from 1); nullopt if the page is of another
  // kind.
  std::optional<BtreePage> ReadPage(uint32_t number) const;

  // Returns the record of a cell; nothing if any part of it is damaged.
  std::optional<DatabaseRecord> ReadRecord(const CellPlace& place) const;

  // Returns the pages of the freelist, as far as the list can be read.
  std::vector<uint32_t> FreePages() const;

 private:
  class Mapping;

  DatabasePages() = default;
  void ReadLog(std::string_view log);
  // Returns the bytes of a page, from the log or the file; empty if there is no such page.
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
