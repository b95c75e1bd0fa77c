#include "server/store/database_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/durable_file.h"

namespace wan::server {
namespace {

constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr size_t kFileHeaderBytes = 100;
constexpr size_t kLogHeaderBytes = 32;
constexpr size_t kFrameHeaderBytes = 24;
constexpr uint32_t kLogMagic = 0x377f0682;  // magic number of the log; if its last bit is set, the
                                            // checksums use big-endian words

uint64_t Big(std::string_view bytes, size_t offset, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  }
  return value;
}
uint32_t Big32(std::string_view bytes, size_t offset) {
  return static_cast<uint32_t>(Big(bytes, offset, 4));
}
uint32_t Big16(std::string_view bytes, size_t offset) {
  return static_cast<uint32_t>(Big(bytes, offset, 2));
}

bool IsPageSize(uint64_t size) { return size >= 512 && size <= 65'536 && (size & (size - 1)) == 0; }

// Removes a variable-length integer from the front of `bytes` and returns it.
std::optional<uint64_t> TakeVarint(std::string_view& bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < 9 && i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (i == 8 || byte < 0x80) {
      value = i == 8 ? value << 8 | byte : value << 7 | byte;
      bytes.remove_prefix(i + 1);
      return value;
    }
    value = value << 7 | (byte & 0x7f);
  }
  return std::nullopt;
}

// Continues a checksum of the write-ahead log over more bytes, whose number is a multiple of 8.
using Checksum = std::array<uint32_t, 2>;
Checksum Continue(Checksum sum, std::string_view bytes, bool big_endian) {
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    for (size_t half = 0; half < 2; ++half) {
      uint32_t word = Big32(bytes, i + 4 * half);
      if (!big_endian) word = __builtin_bswap32(word);
      sum[half] += word + sum[1 - half];
    }
  }
  return sum;
}

std::optional<std::vector<DatabaseValue>> ParseRecord(std::string_view payload) {
  std::string_view header = payload;
  const std::optional<uint64_t> header_bytes = TakeVarint(header);
  if (!header_bytes.has_value() || *header_bytes > payload.size()) return std::nullopt;
  const size_t taken = payload.size() - header.size();
  if (*header_bytes < taken) return std::nullopt;
  header = header.substr(0, *header_bytes - taken);
  std::string_view body = payload.substr(*header_bytes);
  std::vector<DatabaseValue> values;
  while (!header.empty()) {
    const std::optional<uint64_t> type = TakeVarint(header);
    if (!type.has_value() || *type == 7 || *type == 10 || *type == 11) return std::nullopt;
    constexpr size_t kIntegerBytes[] = {0, 1, 2, 3, 4, 6, 8};
    if (*type == 0) {
      values.emplace_back();
    } else if (*type < 7) {
      const size_t size = kIntegerBytes[*type];
      if (body.size() < size) return std::nullopt;
      const auto shift = static_cast<unsigned>(64 - 8 * size);
      values.emplace_back(static_cast<int64_t>(Big(body, 0, size) << shift) >> shift);
      body.remove_prefix(size);
    } else if (*type < 10) {
      values.emplace_back(static_cast<int64_t>(*type - 8));
    } else {
      const uint64_t size = (*type - 12) / 2;
      if (body.size() < size) return std::nullopt;
      values.emplace_back(std::string(body.substr(0, size)));
      body.remove_prefix(size);
    }
  }
  if (!body.empty()) return std::nullopt;
  return values;
}

}  // namespace

// A file mapped into memory.
class DatabasePages::Mapping {
 public:
  explicit Mapping(std::string_view bytes) : bytes_(bytes) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }

  // Maps the file into memory. If `may_miss` is true, treats a missing file as empty.
  static absl::StatusOr<std::shared_ptr<const Mapping>> Of(const std::filesystem::path& file,
                                                           bool may_miss) {
    const Descriptor opened(open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (opened.get() < 0 && errno == ENOENT && may_miss) {
      return std::make_shared<const Mapping>(std::string_view());
    }
    struct stat facts = {};
    if (opened.get() < 0 || fstat(opened.get(), &facts) != 0) {
      return ErrnoError(absl::StrCat("reading ", file.string()), errno);
    }
    const auto size = static_cast<size_t>(facts.st_size);
    if (size == 0) return std::make_shared<const Mapping>(std::string_view());
    void* const bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened.get(), 0);
    if (bytes == MAP_FAILED) return ErrnoError(absl::StrCat("reading ", file.string()), errno);
    return std::make_shared<const Mapping>(std::string_view(static_cast<const char*>(bytes), size));
  }

  std::string_view bytes() const { return bytes_; }

 private:
  const std::string_view bytes_;
};

absl::StatusOr<DatabasePages> DatabasePages::Open(const std::filesystem::path& file) {
  DatabasePages pages;
  absl::StatusOr<std::shared_ptr<const Mapping>> mapped = Mapping::Of(file, /*may_miss=*/false);
  if (!mapped.ok()) return mapped.status();
  pages.file_ = *std::move(mapped);
  mapped = Mapping::Of(file.string() + "-wal", /*may_miss=*/true);
  if (!mapped.ok()) return mapped.status();
  pages.log_file_ = *std::move(mapped);

  const std::string_view bytes = pages.file_->bytes();
  const std::string_view log = pages.log_file_->bytes();
  const bool has_log = log.size() >= kLogHeaderBytes && (Big32(log, 0) & ~1U) == kLogMagic &&
                       IsPageSize(Big32(log, 8));
  if (has_log) pages.page_bytes_ = Big32(log, 8);
  size_t reserved = 0;
  if (bytes.size() >= kFileHeaderBytes && bytes.starts_with(kMagic)) {
    const uint32_t stated = Big16(bytes, 16) == 1 ? 65'536 : Big16(bytes, 16);
    if (IsPageSize(stated)) pages.page_bytes_ = stated;
    reserved = static_cast<unsigned char>(bytes[20]);
  }
  pages.usable_bytes_ = pages.page_bytes_ - (reserved <= 32 ? reserved : 0);
  pages.count_ = static_cast<uint32_t>(bytes.size() / pages.page_bytes_);
  if (has_log && Big32(log, 8) == pages.page_bytes_) pages.ReadLog(log);
  return pages;
}

void DatabasePages::ReadLog(std::string_view log) {
  const bool big_endian = (Big32(log, 0) & 1) != 0;
  const std::string_view salts = log.substr(16, 8);
  // Checksum of everything before the current frame.
  Checksum before = {Big32(log, 24), Big32(log, 28)};
  const size_t frame_bytes = kFrameHeaderBytes + page_bytes_;
  std::unordered_map<uint32_t, std::string_view>
      open;         // the pages of the transaction that is being read
  int damaged = 0;  // number of damaged frames in that transaction
  for (size_t at = kLogHeaderBytes; at + frame_bytes <= log.size(); at += frame_bytes) {
    const std::string_view header = log.substr(at, kFrameHeaderBytes);
    const std::string_view page = log.substr(at + kFrameHeaderBytes, page_bytes_);
    const Checksum sum =
        Continue(Continue(before, header.substr(0, 8), big_endian), page, big_endian);
    before = {Big32(header, 16), Big32(header, 20)};
    // Check each frame separately, so that a damaged frame loses only its own page. Frames of
    // earlier logs, which follow the last transaction, have other salts.
    if (header.substr(8, 8) != salts || sum != before || Big32(header, 0) == 0) {
      ++damaged;
      continue;
    }
    open[Big32(header, 0)] = page;
    if (Big32(header, 4) == 0) continue;
    for (const auto& [number, bytes] : open) {
      from_log_[number] = bytes;
      count_ = std::max(count_, number);
    }
    open.clear();
    damaged_frames_ += std::exchange(damaged, 0);
  }
}

std::string_view DatabasePages::Page(uint32_t number) const {
  const auto found = from_log_.find(number);
  if (found != from_log_.end()) return found->second;
  const std::string_view bytes = file_->bytes();
  if (number == 0 || uint64_t{number} * page_bytes_ > bytes.size()) return {};
  return bytes.substr((size_t{number} - 1) * page_bytes_, page_bytes_);
}

std::optional<BtreePage> DatabasePages::ReadPage(uint32_t number) const {
  const std::string_view page = Page(number);
  const size_t start = number == 1 ? kFileHeaderBytes : 0;
  if (page.empty()) return std::nullopt;
  BtreePage read;
  read.kind = static_cast<BtreePage::Kind>(page[start]);
  bool interior = false;
  switch (read.kind) {
    case BtreePage::Kind::kInteriorIndex:
    case BtreePage::Kind::kInteriorTable:
      interior = true;
      break;
    case BtreePage::Kind::kLeafIndex:
    case BtreePage::Kind::kLeafTable:
      break;
    default:
      return std::nullopt;
  }
  const size_t cells = Big16(page, start + 3);
  const size_t pointers = start + (interior ? 12 : 8);
  if (pointers + 2 * cells > usable_bytes_) return std::nullopt;
  for (size_t i = 0; i < cells; ++i) {
    const uint32_t offset = Big16(page, pointers + 2 * i);
    if (offset < pointers + 2 * cells || offset + 4 > usable_bytes_) {
      read.damaged = true;
      continue;
    }
    if (interior) read.children.push_back(Big32(page, offset));
    if (read.kind != BtreePage::Kind::kInteriorTable) read.cells.push_back({number, offset});
  }
  if (interior) read.children.push_back(Big32(page, start + 8));
  return read;
}

size_t DatabasePages::LocalBytes(size_t payload, bool table_leaf) const {
  const size_t most = table_leaf ? usable_bytes_ - 35 : (usable_bytes_ - 12) * 64 / 255 - 23;
  if (payload <= most) return payload;
  const size_t least = (usable_bytes_ - 12) * 32 / 255 - 23;
  const size_t fitting = least + (payload - least) % (usable_bytes_ - 4);
  return fitting <= most ? fitting : least;
}

std::optional<DatabaseRecord> DatabasePages::ReadRecord(const CellPlace& place) const {
  const std::string_view page = Page(place.page);
  if (page.empty()) return std::nullopt;
  const auto kind = static_cast<BtreePage::Kind>(page[place.page == 1 ? kFileHeaderBytes : 0]);
  std::string_view cell = page.substr(0, usable_bytes_).substr(place.offset);
  if (kind == BtreePage::Kind::kInteriorIndex) cell.remove_prefix(4);
  const std::optional<uint64_t> size = TakeVarint(cell);
  if (!size.has_value() || *size > uint64_t{count_} * page_bytes_) return std::nullopt;
  DatabaseRecord record;
  const bool table = kind == BtreePage::Kind::kLeafTable;
  if (table) {
    const std::optional<uint64_t> rowid = TakeVarint(cell);
    if (!rowid.has_value()) return std::nullopt;
    record.rowid = static_cast<int64_t>(*rowid);
  }
  const size_t local = LocalBytes(*size, table);
  if (local > cell.size()) return std::nullopt;
  std::string payload(cell.substr(0, local));
  cell.remove_prefix(local);
  if (payload.size() < *size) {
    if (cell.size() < 4) return std::nullopt;
    uint32_t next = Big32(cell, 0);
    while (payload.size() < *size) {
      const std::string_view overflow = Page(next);
      if (overflow.empty()) return std::nullopt;
      payload.append(overflow.substr(4, std::min(usable_bytes_ - 4, *size - payload.size())));
      next = Big32(overflow, 0);
    }
    if (next != 0) return std::nullopt;  // the chain of overflow pages belongs to another record
  }
  std::optional<std::vector<DatabaseValue>> values = ParseRecord(payload);
  if (!values.has_value()) return std::nullopt;
  record.values = *std::move(values);
  return record;
}

std::vector<uint32_t> DatabasePages::FreePages() const {
  std::set<uint32_t> pages;
  const std::string_view first = Page(1);
  if (first.empty() || !first.starts_with(kMagic)) return {};
  for (uint32_t trunk = Big32(first, 32); trunk != 0;) {
    const std::string_view page = Page(trunk);
    if (page.empty() || !pages.insert(trunk).second) break;
    const uint32_t leaves = Big32(page, 4);
    if (8 + size_t{leaves} * 4 > usable_bytes_) break;
    for (uint32_t i = 0; i < leaves; ++i) pages.insert(Big32(page, 8 + size_t{i} * 4));
    trunk = Big32(page, 0);
  }
  return {pages.begin(), pages.end()};
}

}  // namespace wan::server
