#include "engine/formats/gguf.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/ggml_types.h"
#include "engine/formats/mapped_file.h"

namespace wan {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint32_t kFirstVersion = 2;
constexpr uint32_t kLastVersion = 3;
constexpr uint64_t kMostDimensions = 8;
constexpr uint64_t kLongestName = 1024;
// Longer texts in the metadata, such as licences, are skipped.
constexpr uint64_t kLongestKeptText = 4096;
constexpr uint64_t kLargestAlignment = 1 << 20;
constexpr std::string_view kOriginalShape = "comfy.gguf.orig_shape.";

// The types of metadata values, and the number of bytes for each type of fixed size.
enum ValueType : uint32_t { kBool = 7, kText = 8, kArray = 9, kValueTypes = 13 };
constexpr uint64_t kValueBytes[kValueTypes] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

// Reads a file's integers and texts one after the other through a small window. After the first
// failure, every read gives zero.
class Cursor {
 public:
  explicit Cursor(const MappedFile& file) : file_(file) {}

  template <typename Integer>
  Integer Read() {
    Integer value{};
    const std::span<const std::byte> bytes = Take(sizeof(Integer));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof(Integer));
    return value;
  }

  // Reads a length and a text of at most `longest` bytes. A longer text is an error.
  std::string ReadText(uint64_t longest) {
    const auto length = Read<uint64_t>();
    if (length > longest) {
      Fail(absl::StrCat("has a name of ", length, " bytes at byte ", position_,
                        "; must have at most ", longest));
      return {};
    }
    const std::span<const std::byte> bytes = Take(length);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  void Skip(uint64_t bytes) {
    if (!status_.ok()) return;
    if (bytes > left()) {
      Fail(absl::StrCat("ends at byte ", file_.bytes().size(),
                        ", within its header: it was cut; download it again"));
    } else {
      position_ += bytes;
    }
  }

  void Fail(std::string_view what) { status_.Update(Damaged(file_.path(), what)); }

  uint64_t position() const { return position_; }
  uint64_t left() const { return file_.bytes().size() - position_; }
  const absl::Status& status() const { return status_; }

 private:
  static constexpr uint64_t kWindow = 1 << 16;

  // Returns the next bytes, at most kWindow of them, and moves past them.
  std::span<const std::byte> Take(uint64_t bytes) {
    const uint64_t begin = position_;
    Skip(bytes);
    if (!status_.ok()) return {};
    if (begin < window_begin_ || begin + bytes > window_begin_ + window_.size()) {
      const std::span<const std::byte> all = file_.bytes();
      absl::StatusOr<std::vector<std::byte>> copy =
          file_.Copy(all.subspan(begin, std::min<uint64_t>(kWindow, all.size() - begin)));
      if (!copy.ok()) {
        status_ = copy.status();
        return {};
      }
      window_ = *std::move(copy);
      window_begin_ = begin;
    }
    return std::span<const std::byte>(window_).subspan(begin - window_begin_, bytes);
  }

  const MappedFile& file_;
  std::vector<std::byte> window_;
  uint64_t window_begin_ = 0;
  uint64_t position_ = 0;
  absl::Status status_;
};

// The metadata that readers of tensors use.
struct Metadata {
  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<int64_t>, std::less<>> original_shapes;
  uint64_t alignment = 32;
};

void SkipArray(Cursor& cursor) {
  const auto type = cursor.Read<uint32_t>();
  const auto count = cursor.Read<uint64_t>();
  if (!cursor.status().ok()) return;
  if (type == kText) {
    // Each text takes at least eight bytes, so even with a wrong count the loop ends at the end of
    // the file.
    for (uint64_t i = 0; i < count && cursor.status().ok(); ++i) {
      cursor.Skip(cursor.Read<uint64_t>());
    }
  } else if (type >= kValueTypes || type == kArray) {
    cursor.Fail(
        absl::StrCat("has an array of values of type ", type, ", which GGUF does not have"));
  } else if (count > cursor.left() / kValueBytes[type]) {
    cursor.Fail(
        absl::StrCat("has an array of ", count, " values, for which the file is too short"));
  } else {
    cursor.Skip(count * kValueBytes[type]);
  }
}

// Reads an array of integers, which is a shape.
std::vector<int64_t> ReadShape(Cursor& cursor) {
  const auto type = cursor.Read<uint32_t>();
  const auto count = cursor.Read<uint64_t>();
  const bool wide = type == 10 || type == 11;
  if (!wide && type != 4 && type != 5) {
    cursor.Fail("has an original shape that is not an array of integers");
  } else if (count > kMostDimensions) {
    cursor.Fail(absl::StrCat("has an original shape of ", count, " dimensions; must have at most ",
                             kMostDimensions));
  }
  std::vector<int64_t> shape;
  for (uint64_t i = 0; i < count && cursor.status().ok(); ++i) {
    shape.push_back(wide ? cursor.Read<int64_t>() : cursor.Read<int32_t>());
  }
  return shape;
}

void ReadValue(Cursor& cursor, const std::string& key, Metadata& metadata) {
  const auto type = cursor.Read<uint32_t>();
  if (type == kText) {
    const auto length = cursor.Read<uint64_t>();
    if (length > kLongestKeptText) {
      cursor.Skip(length);
      return;
    }
    std::string text(length, '\0');
    for (char& c : text) c = cursor.Read<char>();
    metadata.texts[key] = std::move(text);
  } else if (type == kArray && key.starts_with(kOriginalShape)) {
    metadata.original_shapes[key.substr(kOriginalShape.size())] = ReadShape(cursor);
  } else if (type == kArray) {
    SkipArray(cursor);
  } else if (key == "general.alignment" && type == 4) {
    metadata.alignment = cursor.Read<uint32_t>();
    if (metadata.alignment == 0 || metadata.alignment > kLargestAlignment) {
      cursor.Fail(absl::StrCat("has the alignment ", metadata.alignment, "; must be 1 to ",
                               kLargestAlignment));
    }
  } else if (type < kValueTypes) {
    cursor.Skip(kValueBytes[type]);
  } else {
    cursor.Fail(absl::StrCat("has a value of type ", type, ", which GGUF does not have"));
  }
}

// A row of the table of tensors.
struct Entry {
  std::string name;
  std::vector<int64_t> shape;  // the contiguous dimension last
  uint32_t type = 0;
  uint64_t offset = 0;  // from the beginning of the data
};

Entry ReadEntry(Cursor& cursor) {
  Entry entry;
  entry.name = cursor.ReadText(kLongestName);
  const auto dimensions = cursor.Read<uint32_t>();
  if (dimensions > kMostDimensions) {
    cursor.Fail(absl::StrCat("tensor ", Printable(entry.name), " has ", dimensions,
                             " dimensions; must have at most ", kMostDimensions));
    return entry;
  }
  for (uint32_t i = 0; i < dimensions; ++i) entry.shape.push_back(cursor.Read<int64_t>());
  std::reverse(entry.shape.begin(), entry.shape.end());
  entry.type = cursor.Read<uint32_t>();
  entry.offset = cursor.Read<uint64_t>();
  return entry;
}

absl::Status CheckHeader(Cursor& cursor, const MappedFile& file) {
  const absl::StatusOr<std::vector<std::byte>> beginning = file.CopyBeginning();
  if (!beginning.ok()) return beginning.status();
  const std::string_view text(reinterpret_cast<const char*>(beginning->data()), beginning->size());
  if (!text.starts_with(kMagic)) {
    absl::Status foreign = CheckNotForeign(file.path(), *beginning, FileContent::kGguf);
    return foreign.ok() ? Damaged(file.path(), "is not a GGUF file") : foreign;
  }
  cursor.Skip(kMagic.size());
  const auto version = cursor.Read<uint32_t>();
  if (!cursor.status().ok()) return cursor.status();
  if (version >= kFirstVersion && version <= kLastVersion) return absl::OkStatus();
  const uint32_t reversed = __builtin_bswap32(version);
  if (reversed < kFirstVersion || reversed > kLastVersion) {
    return Unsupported(file.path(), absl::StrCat("is a GGUF file of version ", version,
                                                 "; must be version 2 or 3"));
  }
  return Unsupported(file.path(), "is a big-endian GGUF file; must be a little-endian one");
}

// Returns the tensor of a row of the table. `data` are the bytes after the header.
absl::StatusOr<StoredTensor> Locate(const Entry& entry, const Metadata& metadata,
                                    std::span<const std::byte> data, const std::string& path) {
  const auto damaged = [&](std::string_view what) {
    return Damaged(path, absl::StrCat("tensor ", Printable(entry.name), " ", std::string(what)));
  };
  const std::optional<GgmlType> type = FindGgmlType(entry.type);
  if (!type.has_value() || !type->IsRead()) {
    return Unsupported(path,
                       absl::StrCat("tensor ", Printable(entry.name), " has the GGML type ",
                                    type.has_value() ? std::string(type->name) : "number ",
                                    type.has_value() ? "" : std::to_string(entry.type),
                                    ", which is not read; take a file with ", ReadGgmlTypes()));
  }
  const std::optional<int64_t> elements = ElementCount(entry.shape);
  const size_t in_block = type->plain.has_value() ? 1 : type->decoder->block_elements();
  const size_t block_bytes =
      type->plain.has_value() ? DTypeSize(*type->plain) : type->decoder->block_bytes();
  uint64_t bytes = 0;
  if (!elements.has_value() ||
      __builtin_mul_overflow(static_cast<uint64_t>(*elements) / in_block, block_bytes, &bytes)) {
    return damaged(absl::StrCat("has the impossible shape ", ShapeText(entry.shape),
                                ": the file's header changed; download it again"));
  }
  const int64_t row = entry.shape.empty() ? 1 : entry.shape.back();
  if (row % static_cast<int64_t>(in_block) != 0) {
    return damaged(absl::StrCat("has rows of ", row, " elements, which is not a multiple of the ",
                                in_block, " in a block of ", std::string(type->name)));
  }
  if (entry.offset > data.size() || bytes > data.size() - entry.offset) {
    return damaged(absl::StrCat("has ", bytes, " bytes from byte ", entry.offset,
                                " of the data, but there are only ", data.size(),
                                ": the file was cut or its header changed; download it again"));
  }
  StoredTensor tensor{.name = entry.name,
                      .dtype = type->plain.value_or(DType::kBFloat16),
                      .shape = entry.shape,
                      .bytes = data.subspan(entry.offset, bytes),
                      .decoder = type->decoder};
  if (const auto original = metadata.original_shapes.find(entry.name);
      original != metadata.original_shapes.end()) {
    if (ElementCount(original->second) != elements) {
      return damaged(absl::StrCat("has the shape ", ShapeText(entry.shape),
                                  ", which its original shape ", ShapeText(original->second),
                                  " contradicts"));
    }
    tensor.shape = original->second;
  }
  return tensor;
}

// Checks that no byte belongs to two tensors and that names are different.
absl::Status CheckApart(const std::vector<StoredTensor>& tensors, const std::string& path) {
  std::set<std::string_view> names;
  std::vector<const StoredTensor*> in_order;
  for (const StoredTensor& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      return Damaged(path, absl::StrCat("tensor ", Printable(tensor.name), " occurs twice"));
    }
    if (!tensor.bytes.empty()) in_order.push_back(&tensor);
  }
  std::sort(in_order.begin(), in_order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return a->bytes.data() < b->bytes.data();
  });
  for (size_t i = 1; i < in_order.size(); ++i) {
    const StoredTensor& a = *in_order[i - 1];
    const StoredTensor& b = *in_order[i];
    if (a.bytes.data() + a.bytes.size() > b.bytes.data()) {
      return Damaged(path, absl::StrCat("tensors ", Printable(a.name), " and ", Printable(b.name),
                                        " overlap"));
    }
  }
  return absl::OkStatus();
}

// Fails if `count` records of at least `least` bytes do not fit into the rest of the file.
void CheckCount(Cursor& cursor, uint64_t count, uint64_t least, std::string_view what) {
  if (count <= cursor.left() / least) return;
  cursor.Fail(absl::StrCat("claims ", count, " ", std::string(what),
                           ", for which the file is too short: it was cut or its header changed; "
                           "download it again"));
}

}  // namespace

absl::StatusOr<TensorFile> ReadGguf(const std::string& path) {
  absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  Cursor cursor(**file);
  if (absl::Status status = CheckHeader(cursor, **file); !status.ok()) return status;
  const auto tensor_count = cursor.Read<uint64_t>();
  const auto value_count = cursor.Read<uint64_t>();
  CheckCount(cursor, value_count, 13, "values of metadata");
  CheckCount(cursor, tensor_count, 24, "tensors");
  Metadata metadata;
  for (uint64_t i = 0; i < value_count && cursor.status().ok(); ++i) {
    const std::string key = cursor.ReadText(1 << 16);
    ReadValue(cursor, key, metadata);
  }
  std::vector<Entry> entries;
  for (uint64_t i = 0; i < tensor_count && cursor.status().ok(); ++i) {
    entries.push_back(ReadEntry(cursor));
  }
  if (!cursor.status().ok()) return cursor.status();

  const uint64_t end = cursor.position();
  const uint64_t data_begin =
      (end + metadata.alignment - 1) / metadata.alignment * metadata.alignment;
  const std::span<const std::byte> all = (*file)->bytes();
  const std::span<const std::byte> data = all.subspan(std::min<uint64_t>(data_begin, all.size()));
  TensorFile tensors{.path = path, .mapping = *file, .file = file->get()};
  tensors.metadata = std::move(metadata.texts);
  for (const Entry& entry : entries) {
    absl::StatusOr<StoredTensor> tensor = Locate(entry, metadata, data, path);
    if (!tensor.ok()) return tensor.status();
    tensors.tensors.push_back(*std::move(tensor));
  }
  if (absl::Status status = CheckApart(tensors.tensors, path); !status.ok()) return status;
  return tensors;
}

}  // namespace wan
