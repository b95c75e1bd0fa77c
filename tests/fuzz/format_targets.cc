// Checkpoint files, as the operator's disk may hold them.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/expected_tensors.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/checkpoint/weight_tables.h"
#include "engine/formats/dtype.h"
#include "engine/formats/gguf.h"
#include "engine/formats/json_text.h"
#include "engine/formats/latents_file.h"
#include "engine/formats/pickle.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/safetensors_writer.h"
#include "engine/formats/torch_archive.h"
#include "tests/fuzz/fuzz_target.h"

namespace wan {
namespace {

namespace fs = std::filesystem;

constexpr auto kOk = absl::StatusCode::kOk;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

// Reads every byte of every tensor, as loading does.
void ReadTensors(const TensorFile& file) {
  std::set<std::string> names;
  std::byte all{};
  for (const StoredTensor& tensor : file.tensors) {
    Require(names.insert(tensor.name).second, "a file's tensors have different names");
    uint64_t elements = 1;
    for (const int64_t size : tensor.shape) elements *= static_cast<uint64_t>(size);
    if (tensor.decoder != nullptr) {
      Require(tensor.bytes.size() * tensor.decoder->block_elements() ==
                  elements * tensor.decoder->block_bytes(),
              "a tensor has the blocks of its shape");
      std::vector<uint16_t> values(elements);
      tensor.decoder->Decode(0, tensor.bytes, values);
    } else {
      Require(tensor.bytes.size() == elements * DTypeSize(tensor.dtype),
              "a tensor has the bytes of its shape");
    }
    for (const std::byte byte : tensor.bytes) all ^= byte;
  }
  volatile std::byte sink = all;
  static_cast<void>(sink);
}

// A folder of this process alone, which goes with it.
class Folder {
 public:
  Folder()
      : path_(fs::temp_directory_path() / absl::StrCat("wan_fuzz_", static_cast<int>(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  const fs::path path_;
};

}  // namespace

void FuzzSafetensors(FuzzInput input) {
  const MemoryFile file(input);
  const absl::StatusOr<TensorFile> read = ReadSafetensors(file.path());
  RequireCode(read.status(), {kOk, kDataLoss});
  if (read.ok()) ReadTensors(*read);
  // The same file as a caller's latents.
  const absl::StatusOr<StoredTensor> latents = FindLatents(TextOf(input));
  RequireCode(latents.status(), {kOk, absl::StatusCode::kInvalidArgument});
  if (latents.ok()) ReadTensors(TensorFile{.path = "latents", .tensors = {*latents}});
}

void FuzzSafetensorsIndex(FuzzInput input) {
  // The folder has one shard with two tensors, which inputs may name.
  static const Folder* const folder = [] {
    static const Folder made;
    constexpr std::array<std::byte, 8> kBytes{};
    const absl::Status written =
        WriteSafetensors((made.path() / "shard.safetensors").string(),
                         {{"a", "F32", {2}, kBytes}, {"b", "F16", {2, 2}, kBytes}});
    Require(written.ok(), "the shard can be written");
    return &made;
  }();
  const fs::path index = folder->path() / "model.safetensors.index.json";
  std::ofstream(index, std::ios::binary) << TextOf(input);
  const TensorFiles read = ReadShardedSafetensors(index.string());
  Require(!read.files.empty() || !read.problems.empty(), "an index gives shards or problems");
  for (const absl::Status& problem : read.problems) {
    RequireCode(problem,
                {kDataLoss, absl::StatusCode::kNotFound, absl::StatusCode::kFailedPrecondition});
  }
  for (const TensorFile& file : read.files) ReadTensors(file);
}

void FuzzTorchArchive(FuzzInput input) {
  const MemoryFile file(input);
  const absl::StatusOr<TensorFile> read = ReadTorchArchive(file.path());
  RequireCode(read.status(), {kOk, kDataLoss, kUnimplemented});
  if (read.ok()) ReadTensors(*read);
}

void FuzzGguf(FuzzInput input) {
  const MemoryFile file(input);
  const absl::StatusOr<TensorFile> read = ReadGguf(file.path());
  RequireCode(read.status(), {kOk, kDataLoss, kUnimplemented});
  if (read.ok()) ReadTensors(*read);
}

// A component's file with matrices in 8 bits, their scales and the marks of programs.
void FuzzScaledWeights(FuzzInput input) {
  const MemoryFile file(input);
  absl::StatusOr<TensorFile> read = ReadSafetensors(file.path());
  RequireCode(read.status(), {kOk, kDataLoss});
  if (!read.ok()) return;
  std::vector<TensorSpec> specs;  // of a model that has just these weights
  for (const StoredTensor& tensor : read->tensors) {
    if (!tensor.name.ends_with(".weight") && !tensor.name.ends_with(".bias")) continue;
    specs.push_back({.name = tensor.name, .diffusers_name = tensor.name, .shape = tensor.shape});
  }
  TensorFiles files;
  files.files.push_back(*std::move(read));
  std::vector<absl::Status> problems;
  const auto weights = MakeFileWeights(files, specs, Naming::kUpstream, file.path(), problems);
  for (const absl::Status& problem : problems) RequireCode(problem, {kDataLoss, kUnimplemented});
  for (const TensorInfo& info : weights->Tensors()) {
    const absl::StatusOr<TensorBytes> bytes = weights->Read(info);
    RequireCode(bytes.status(), {kOk});
    Require(bytes->size() == info.bytes, "a tensor has the bytes that its description states");
    std::vector<std::byte> whole(info.bytes);
    RequireCode(bytes->Read(0, whole), {kOk});
    const size_t begin = whole.size() / 3;
    std::vector<std::byte> part(whole.size() - begin);
    RequireCode(bytes->Part(begin, part.size()).Read(0, part), {kOk});
    Require(std::equal(part.begin(), part.end(), whole.begin() + static_cast<ptrdiff_t>(begin)),
            "a part of a tensor's bytes is the same alone");
  }
}

void FuzzPickle(FuzzInput input) {
  const absl::StatusOr<Pickle> read = ReadPickle(std::as_bytes(input), "input");
  RequireCode(read.status(), {kOk, kDataLoss});
  if (read.ok()) Require(read->root != nullptr, "a pickle has a value");
}

void FuzzJson(FuzzInput input) {
  const absl::StatusOr<nlohmann::json> read = ParseJson(TextOf(input), "input");
  RequireCode(read.status(), {kOk, kDataLoss});
  if (!read.ok()) return;
  const absl::StatusOr<nlohmann::json> again = ParseJson(read->dump(), "input");
  Require(again.ok() && *again == *read, "what was read can be written and read again");
}

}  // namespace wan
