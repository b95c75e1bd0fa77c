#include "engine/formats/safetensors.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/formats/byte_reader.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/json_text.h"
#include "engine/formats/mapped_file.h"

namespace wan {
namespace {

using nlohmann::json;

// The format itself has this limit.
constexpr uint64_t kLongestHeader = 100'000'000;
constexpr size_t kHeaderAt = sizeof(uint64_t);  // the header follows its length
constexpr const char kMetadataKey[] = "__metadata__";

absl::Status CheckMetadata(const json& metadata, const std::string& path) {
  const bool good =
      metadata.is_object() && std::all_of(metadata.begin(), metadata.end(),
                                          [](const json& value) { return value.is_string(); });
  return good ? absl::OkStatus() : Damaged(path, "__metadata__ is not an object of strings");
}

// Returns the value of `key` if it is an array of non-negative integers; otherwise nullopt.
std::optional<std::vector<int64_t>> Extents(const json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array()) return std::nullopt;
  std::vector<int64_t> extents;
  for (const json& value : *found) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > INT64_MAX) return std::nullopt;
    extents.push_back(value.get<int64_t>());
  }
  return extents;
}

absl::StatusOr<StoredTensor> ReadEntry(const std::string& name, const json& entry,
                                       std::span<const std::byte> data, const std::string& path) {
  const auto damaged = [&](std::string_view what) {
    return Damaged(path, absl::StrCat("tensor ", Printable(name), " ", std::string(what)));
  };
  if (!entry.is_object() || entry.size() != 3) {
    return damaged("has no header of dtype, shape and data_offsets");
  }
  const auto dtype_text = entry.find("dtype");
  if (dtype_text == entry.end() || !dtype_text->is_string()) return damaged("has no dtype");
  const std::optional<DType> dtype = DTypeFromName(dtype_text->get_ref<const std::string&>());
  if (!dtype.has_value()) {
    return damaged(absl::StrCat("has the unknown dtype ",
                                Printable(dtype_text->get_ref<const std::string&>())));
  }
  std::optional<std::vector<int64_t>> shape = Extents(entry, "shape");
  const std::optional<std::vector<int64_t>> offsets = Extents(entry, "data_offsets");
  if (!shape.has_value()) return damaged("has no shape of non-negative integers");
  if (!offsets.has_value() || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1]) {
    return damaged("has no data_offsets [begin, end]");
  }
  const uint64_t begin = (*offsets)[0], end = (*offsets)[1];
  if (end > data.size()) {
    return damaged(absl::StrCat("ends at byte ", end, " of the data, but there are only ",
                                data.size(),
                                ": the file was cut or its header changed; download it again"));
  }
  const std::optional<int64_t> elements = ElementCount(*shape);
  int64_t bytes = 0;
  if (!elements.has_value() ||
      __builtin_mul_overflow(*elements, static_cast<int64_t>(DTypeSize(*dtype)), &bytes) ||
      static_cast<uint64_t>(bytes) != end - begin) {
    return damaged(absl::StrCat("has ", end - begin, " bytes, which is not ", ShapeText(*shape),
                                " of ", std::string(DTypeName(*dtype))));
  }
  return StoredTensor{.name = name,
                      .dtype = *dtype,
                      .shape = *std::move(shape),
                      .bytes = data.subspan(begin, end - begin)};
}

// Checks that each byte of `data` belongs to exactly one tensor.
absl::Status CheckCover(const std::vector<StoredTensor>& tensors, std::span<const std::byte> data,
                        const std::string& path) {
  std::vector<const StoredTensor*> in_order;
  in_order.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) in_order.push_back(&tensor);
  const auto begin_of = [&](const StoredTensor& tensor) {
    return static_cast<uint64_t>(tensor.bytes.data() - data.data());
  };
  std::sort(in_order.begin(), in_order.end(), [&](const StoredTensor* a, const StoredTensor* b) {
    return std::pair(begin_of(*a), a->bytes.size()) < std::pair(begin_of(*b), b->bytes.size());
  });
  uint64_t covered = 0;
  const StoredTensor* previous = nullptr;
  for (const StoredTensor* tensor : in_order) {
    const uint64_t begin = begin_of(*tensor);
    if (begin < covered) {
      return Damaged(path, absl::StrCat("tensors ", Printable(previous->name), " and ",
                                        Printable(tensor->name), " overlap"));
    }
    if (begin > covered) {
      return Damaged(path, absl::StrCat("there is a hole of ", begin - covered,
                                        " bytes before tensor ", Printable(tensor->name)));
    }
    covered += tensor->bytes.size();
    previous = tensor;
  }
  if (covered != data.size()) {
    return Damaged(path, absl::StrCat(data.size() - covered, " bytes follow the last tensor",
                                      previous == nullptr ? "" : " ",
                                      previous == nullptr ? "" : Printable(previous->name)));
  }
  return absl::OkStatus();
}

// Returns the length of the header that follows the first 8 bytes. `beginning` is the beginning of
// a file of `file_bytes` bytes.
absl::StatusOr<size_t> HeaderLength(std::span<const std::byte> beginning, size_t file_bytes,
                                    const std::string& path, uint64_t longest) {
  ByteReader reader(beginning);
  const auto length = reader.Read<uint64_t>();
  const bool begins_well = !reader.failed() && length <= kLongestHeader &&
                           beginning.size() > kHeaderAt && beginning[kHeaderAt] == std::byte{'{'};
  // In a file of another kind, the first 8 bytes are not a length.
  if (!begins_well) {
    absl::Status foreign = CheckNotForeign(path, beginning, FileContent::kSafetensors);
    if (!foreign.ok()) return foreign;
  }
  if (reader.failed()) {
    return Damaged(path, absl::StrCat("is ", file_bytes,
                                      " bytes long, which is too short for a safetensors file"));
  }
  if (length > longest) {
    return Damaged(path, absl::StrCat("claims a header of more than the ", longest,
                                      " bytes that are allowed; must be a safetensors file"));
  }
  if (length > file_bytes - kHeaderAt) {
    return Damaged(path, absl::StrCat("claims a header of ", length, " bytes, but the file is ",
                                      file_bytes, " bytes long: it was cut; download it again"));
  }
  if (!begins_well) {
    return Damaged(path,
                   "is not a safetensors file, whose header would begin with {; download it again");
  }
  return length;
}

// Adds what the header says, and checks it. `data` are the bytes that follow the header.
absl::Status ReadTensors(std::span<const std::byte> header_bytes, std::span<const std::byte> data,
                         TensorFile& tensors) {
  const std::string& path = tensors.path;
  const absl::StatusOr<json> header =
      ParseJson({reinterpret_cast<const char*>(header_bytes.data()), header_bytes.size()}, path);
  if (!header.ok()) {
    return absl::Status(header.status().code(),
                        absl::StrCat(header.status().message(),
                                     " (in the header): the file is damaged; download it again"));
  }
  if (!header->is_object()) return Damaged(path, "header is not a JSON object");
  for (const auto& [name, entry] : header->items()) {
    if (name == kMetadataKey) {
      if (absl::Status status = CheckMetadata(entry, path); !status.ok()) return status;
      tensors.metadata = entry.get<std::map<std::string, std::string>>();
      continue;
    }
    absl::StatusOr<StoredTensor> tensor = ReadEntry(name, entry, data, path);
    if (!tensor.ok()) return tensor.status();
    tensors.tensors.push_back(*std::move(tensor));
  }
  return CheckCover(tensors.tensors, data, path);
}

// The names of the tensors in each shard file, according to the index.
using ShardContents = std::map<std::string, std::vector<std::string>>;

absl::StatusOr<ShardContents> ReadIndex(const std::string& index_path) {
  const absl::StatusOr<json> index = ReadJsonObject(index_path);
  if (!index.ok()) return index.status();
  const auto weight_map = index->find("weight_map");
  if (weight_map == index->end() || !weight_map->is_object() || weight_map->empty()) {
    return Damaged(index_path, "has no weight_map from tensor to shard");
  }
  ShardContents shards;
  for (const auto& [tensor, shard] : weight_map->items()) {
    const std::string file = shard.is_string() ? shard.get<std::string>() : "";
    // Shards must be in the folder of their index, because a path in the index could lead to any
    // file of the machine.
    if (!file.ends_with(".safetensors") ||
        file.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
      return Damaged(index_path,
                     absl::StrCat("tensor ", Printable(tensor), " lies in \"", Printable(file),
                                  "\", which is not the name of a shard"));
    }
    shards[file].push_back(tensor);
  }
  return shards;
}

absl::Status CheckShard(const TensorFile& shard, std::vector<std::string> indexed,
                        const std::string& index_path) {
  std::vector<std::string> stored;
  stored.reserve(shard.tensors.size());
  for (const StoredTensor& tensor : shard.tensors) stored.push_back(tensor.name);
  std::sort(stored.begin(), stored.end());
  std::sort(indexed.begin(), indexed.end());
  std::vector<std::string> difference;
  std::set_difference(indexed.begin(), indexed.end(), stored.begin(), stored.end(),
                      std::back_inserter(difference));
  if (!difference.empty()) {
    return Absent(
        shard.path,
        absl::StrCat("tensor ", Printable(difference.front()), " is missing, although ", index_path,
                     " says that it is in this file (", difference.size(), " such tensors)"));
  }
  std::set_difference(stored.begin(), stored.end(), indexed.begin(), indexed.end(),
                      std::back_inserter(difference));
  if (!difference.empty()) {
    return Damaged(shard.path, absl::StrCat("tensor ", Printable(difference.front()),
                                            " is in this file, but not according to ", index_path,
                                            " (", difference.size(), " such tensors)"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorFile> ReadSafetensors(const std::string& path) {
  absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  const std::span<const std::byte> bytes = (*file)->bytes();
  const absl::StatusOr<std::vector<std::byte>> beginning = (*file)->CopyBeginning();
  if (!beginning.ok()) return beginning.status();
  const absl::StatusOr<size_t> header_length =
      HeaderLength(*beginning, bytes.size(), path, kLongestHeader);
  if (!header_length.ok()) return header_length.status();
  const absl::StatusOr<std::vector<std::byte>> header =
      (*file)->Copy(bytes.subspan(kHeaderAt, *header_length));
  if (!header.ok()) return header.status();
  TensorFile tensors{.path = path, .mapping = *file, .file = file->get()};
  absl::Status status = ReadTensors(*header, bytes.subspan(kHeaderAt + *header_length), tensors);
  if (!status.ok()) return status;
  return tensors;
}

absl::StatusOr<TensorFile> ReadSafetensorsBytes(std::span<const std::byte> bytes,
                                                const std::string& name, uint64_t longest_header) {
  const absl::StatusOr<size_t> header_length =
      HeaderLength(bytes, bytes.size(), name, longest_header);
  if (!header_length.ok()) return header_length.status();
  TensorFile tensors{.path = name};
  absl::Status status = ReadTensors(bytes.subspan(kHeaderAt, *header_length),
                                    bytes.subspan(kHeaderAt + *header_length), tensors);
  if (!status.ok()) return status;
  return tensors;
}

TensorFiles ReadShardedSafetensors(const std::string& index_path) {
  TensorFiles result;
  const absl::StatusOr<ShardContents> shards = ReadIndex(index_path);
  if (!shards.ok()) {
    result.problems.push_back(shards.status());
    return result;
  }
  const std::filesystem::path folder = std::filesystem::path(index_path).parent_path();
  for (const auto& [name, indexed] : *shards) {
    absl::StatusOr<TensorFile> shard = ReadSafetensors((folder / name).string());
    absl::Status status = shard.ok() ? CheckShard(*shard, indexed, index_path) : shard.status();
    if (!status.ok()) {
      result.problems.push_back(std::move(status));
    } else {
      result.files.push_back(*std::move(shard));
    }
  }
  return result;
}

}  // namespace wan
