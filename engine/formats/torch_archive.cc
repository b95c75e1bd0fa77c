#include "engine/formats/torch_archive.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/mapped_file.h"
#include "engine/formats/pickle.h"
#include "engine/formats/zip_directory.h"

namespace wan {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kPickleRecord = "/data.pkl";

std::optional<DType> DTypeOfStorage(std::string_view global) {
  static constexpr std::array<std::pair<std::string_view, DType>, 10> kStorages = {{
      {"torch DoubleStorage", DType::kFloat64},
      {"torch FloatStorage", DType::kFloat32},
      {"torch HalfStorage", DType::kFloat16},
      {"torch BFloat16Storage", DType::kBFloat16},
      {"torch LongStorage", DType::kInt64},
      {"torch IntStorage", DType::kInt32},
      {"torch ShortStorage", DType::kInt16},
      {"torch CharStorage", DType::kInt8},
      {"torch ByteStorage", DType::kUInt8},
      {"torch BoolStorage", DType::kBool},
  }};
  const auto* const found =
      std::find_if(kStorages.begin(), kStorages.end(),
                   [&](const auto& storage) { return storage.first == global; });
  return found == kStorages.end() ? std::nullopt : std::optional(found->second);
}

// Returns the items of a tuple that has `count` of them; empty for any other value.
std::span<const PickleValue* const> Items(const PickleValue& value, size_t count) {
  if (value.kind != Kind::kTuple || value.items.size() != count) return {};
  return value.items;
}

std::optional<std::vector<int64_t>> Integers(const PickleValue& value) {
  if (value.kind != Kind::kTuple) return std::nullopt;
  std::vector<int64_t> integers;
  for (const PickleValue* item : value.items) {
    if (item->kind != Kind::kInteger) return std::nullopt;
    integers.push_back(item->integer);
  }
  return integers;
}

bool IsContiguous(const std::vector<int64_t>& shape, const std::vector<int64_t>& stride) {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && stride[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

struct Storage {
  DType dtype = DType::kFloat32;
  std::span<const std::byte> bytes;
};

class ArchiveReader {
 public:
  ArchiveReader(const std::string& path, const ZipDirectory& records, const ReadPiece& read)
      : path_(path), records_(records), read_(read) {}

  absl::StatusOr<std::vector<StoredTensor>> Read() {
    const absl::StatusOr<std::vector<std::byte>> pickle_bytes = FindPickle();
    if (!pickle_bytes.ok()) return pickle_bytes.status();
    if (absl::Status status = CheckByteOrder(); !status.ok()) return status;
    const absl::StatusOr<Pickle> pickle =
        ReadPickle(*pickle_bytes, absl::StrCat(path_, ": ", folder_, "/data.pkl"));
    if (!pickle.ok()) return pickle.status();
    if (pickle->root->kind != Kind::kDict) {
      return Wrong(absl::StrCat("holds a value of kind ",
                                std::string(PickleKindName(pickle->root->kind)),
                                ", expected a dict of tensors"));
    }
    std::vector<StoredTensor> tensors;
    std::set<std::string_view> names;
    for (const auto& [key, value] : pickle->root->entries) {
      if (key->kind != Kind::kString) {
        return Wrong(absl::StrCat("a tensor's name is of kind ",
                                  std::string(PickleKindName(key->kind)), ", expected a string"));
      }
      if (!names.insert(key->text).second) {
        return Wrong(absl::StrCat("tensor ", Printable(key->text), " occurs twice"));
      }
      absl::StatusOr<StoredTensor> tensor = ReadTensor(key->text, *value);
      if (!tensor.ok()) return tensor.status();
      tensors.push_back(*std::move(tensor));
    }
    if (absl::Status status = CheckAllUsed(); !status.ok()) return status;
    return tensors;
  }

 private:
  absl::Status Wrong(std::string_view what) const { return Damaged(path_, what); }

  static std::string Subject(const std::string& tensor) {
    return absl::StrCat("tensor ", Printable(tensor), " ");
  }

  // All records are in one folder, which has the name of the file that was saved.
  absl::StatusOr<std::vector<std::byte>> FindPickle() {
    const ZipRecord* found = nullptr;
    for (const auto& [name, record] : records_) {
      if (!name.ends_with(kPickleRecord)) continue;
      if (found != nullptr) return Wrong("has more than one data.pkl");
      found = &record;
      folder_ = name.substr(0, name.size() - kPickleRecord.size());
    }
    if (found == nullptr) return Wrong("has no data.pkl, so it is not an archive of torch.save");
    return ReadZipRecord("data.pkl", *found, path_, read_);
  }

  absl::Status CheckByteOrder() const {
    const auto record = records_.find(absl::StrCat(folder_, "/byteorder"));
    if (record == records_.end()) return absl::OkStatus();  // written before torch 2.1
    const auto bytes = ReadZipRecord("byteorder", record->second, path_, read_);
    if (!bytes.ok()) return bytes.status();
    const std::string_view order{reinterpret_cast<const char*>(bytes->data()), bytes->size()};
    if (order == "little") return absl::OkStatus();
    return Unsupported(path_, absl::StrCat("record byteorder says \"", Printable(order),
                                           "\", expected \"little\""));
  }

  absl::StatusOr<StoredTensor> ReadTensor(const std::string& name, const PickleValue& value) {
    const auto wrong = [&](std::string_view what) {
      return Wrong(absl::StrCat(Subject(name), std::string(what)));
    };
    const PickleValue* tensor = &value;
    if (tensor->kind == Kind::kCall && tensor->text == "torch._utils _rebuild_parameter") {
      // the arguments are (tensor, requires_grad, hooks)
      const auto arguments = Items(*tensor->items.front(), 3);
      if (arguments.empty()) return wrong("is a malformed parameter");
      tensor = arguments[0];
    }
    if (tensor->kind != Kind::kCall || tensor->text != "torch._utils _rebuild_tensor_v2") {
      return wrong(absl::StrCat("is of kind ", std::string(PickleKindName(tensor->kind)),
                                ", expected a tensor"));
    }
    // the arguments are (storage, offset in elements, size, stride, requires_grad, hooks)
    const auto arguments = Items(*tensor->items.front(), 6);
    if (arguments.empty() || arguments[1]->kind != Kind::kInteger) {
      return wrong("does not have the arguments of a tensor");
    }
    const absl::StatusOr<Storage> storage = ReadStorage(name, *arguments[0]);
    if (!storage.ok()) return storage.status();
    const int64_t offset = arguments[1]->integer;
    std::optional<std::vector<int64_t>> shape = Integers(*arguments[2]);
    const std::optional<std::vector<int64_t>> stride = Integers(*arguments[3]);
    const std::optional<int64_t> count = shape.has_value() ? ElementCount(*shape) : std::nullopt;
    if (!count.has_value() || !stride.has_value() || stride->size() != shape->size()) {
      return wrong("has a malformed size or stride");
    }
    const auto element = static_cast<int64_t>(DTypeSize(storage->dtype));
    const auto available = static_cast<int64_t>(storage->bytes.size()) / element;
    if (offset < 0 || offset > available || *count > available - offset) {
      return wrong(absl::StrCat(ShapeText(*shape), " at element ", offset,
                                " reaches beyond its storage of ", available, " elements"));
    }
    if (*count > 0 && !IsContiguous(*shape, *stride)) {
      return Unsupported(path_, absl::StrCat(Subject(name), "is not contiguous: strides ",
                                             ShapeText(*stride), " of ", ShapeText(*shape)));
    }
    return StoredTensor{.name = name,
                        .dtype = storage->dtype,
                        .shape = *std::move(shape),
                        .bytes = storage->bytes.subspan(offset * element, *count * element)};
  }

  absl::StatusOr<Storage> ReadStorage(const std::string& tensor, const PickleValue& value) {
    // the id is ("storage", type, record, device, elements)
    std::span<const PickleValue* const> id;
    if (value.kind == Kind::kPersistentId) id = Items(*value.items.front(), 5);
    if (id.empty() || id[0]->kind != Kind::kString || id[0]->text != "storage" ||
        id[1]->kind != Kind::kName || id[2]->kind != Kind::kString ||
        id[4]->kind != Kind::kInteger) {
      return Wrong(absl::StrCat(Subject(tensor), "has no storage"));
    }
    const std::optional<DType> dtype = DTypeOfStorage(id[1]->text);
    if (!dtype.has_value()) {
      return Wrong(absl::StrCat(Subject(tensor), "has a storage of type ", id[1]->text));
    }
    const std::string name = absl::StrCat(folder_, "/data/", id[2]->text);
    const auto record = records_.find(name);
    if (record == records_.end()) {
      return Wrong(
          absl::StrCat(Subject(tensor), "needs record ", Printable(name), ", which is missing"));
    }
    used_.insert(name);
    const uint64_t size = record->second.bytes.size();
    const uint64_t element = DTypeSize(*dtype);
    if (size % element != 0 || id[4]->integer < 0 ||
        static_cast<uint64_t>(id[4]->integer) != size / element) {
      return Wrong(absl::StrCat(Subject(tensor), "needs ", id[4]->integer, " elements of ",
                                std::string(DTypeName(*dtype)), ", but record ", Printable(name),
                                " has ", size, " bytes"));
    }
    return Storage{.dtype = *dtype, .bytes = record->second.bytes};
  }

  // If no tensor uses a storage, some tensor probably refers to a wrong storage.
  absl::Status CheckAllUsed() const {
    const std::string prefix = absl::StrCat(folder_, "/data/");
    for (auto record = records_.lower_bound(prefix);
         record != records_.end() && record->first.starts_with(prefix); ++record) {
      if (!used_.contains(record->first)) {
        return Wrong(absl::StrCat("record ", Printable(record->first), " belongs to no tensor"));
      }
    }
    return absl::OkStatus();
  }

  const std::string& path_;
  const ZipDirectory& records_;
  const ReadPiece& read_;
  std::string folder_;
  std::set<std::string, std::less<>> used_;  // the records of storages that tensors use
};

}  // namespace

absl::StatusOr<TensorFile> ReadTorchArchive(const std::string& path) {
  const absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<std::vector<std::byte>> beginning = (*file)->CopyBeginning();
  if (!beginning.ok()) return beginning.status();
  absl::Status foreign = CheckNotForeign(path, *beginning, FileContent::kTorchArchive);
  if (!foreign.ok()) return foreign;
  const ReadPiece read = [opened = file->get()](std::span<const std::byte> part, std::byte* out) {
    return opened->Read(part, out);
  };
  const absl::StatusOr<ZipDirectory> records = ReadZipDirectory((*file)->bytes(), path, read);
  if (!records.ok()) return records.status();
  absl::StatusOr<std::vector<StoredTensor>> tensors = ArchiveReader(path, *records, read).Read();
  if (!tensors.ok()) return tensors.status();
  return TensorFile{
      .path = path, .mapping = *file, .file = file->get(), .tensors = *std::move(tensors)};
}

}  // namespace wan
