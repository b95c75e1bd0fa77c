#include "engine/checkpoint/scaled_weights.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/formats/dtype.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/finite.h"
#include "engine/formats/mapped_file.h"
#include "engine/formats/scaled_codes.h"
#include "engine/formats/small_floats.h"

namespace wan {
namespace {

constexpr std::string_view kWeight = ".weight";
// The side of TurboDiffusion's tiles, which have one scale each.
constexpr size_t kTile = 128;
// The names of scales: LightX2V's and ComfyUI's newer one, ComfyUI's, TurboDiffusion's.
constexpr std::string_view kScales[] = {".weight_scale", ".scale_weight", ".scale"};
// Endings of tensors that the engine does not use: scales of activations, and a mark that names the
// form. The engine computes its own scales of activations.
constexpr std::string_view kUnused[] = {".scale_input", ".input_scale", ".comfy_quant"};

std::string Join(std::string_view stem, std::string_view suffix) {
  return absl::StrCat(std::string(stem), std::string(suffix));
}

// Returns the name without its ending ".weight"; empty for names without this ending.
std::string_view StemOf(std::string_view name) {
  return name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : "";
}

Located Take(StoredTensors& stored, const std::string& name) {
  const auto node = stored.extract(name);
  return node.empty() ? Located{} : node.mapped();
}

absl::Status Contradiction(const Located& tensor, std::string_view what) {
  return Damaged(tensor.file->path,
                 absl::StrCat("tensor ", Printable(tensor.tensor->name), " ", std::string(what)));
}

// Returns the rows and columns that share one scale in a matrix [rows, columns]; nullopt if the
// shape of `scales` does not fit the matrix.
std::optional<CodeScales> PartsOf(const std::vector<int64_t>& scales, size_t rows, size_t columns) {
  const auto is = [&](size_t first, size_t second) {
    return scales.size() == 2 && static_cast<size_t>(scales[0]) == first &&
           static_cast<size_t>(scales[1]) == second;
  };
  const auto tiles = [](size_t extent) { return (extent + kTile - 1) / kTile; };
  if (ElementCount(scales) == 1) return CodeScales{.rows = rows, .columns = columns};
  if (is(rows, 1) || (scales.size() == 1 && static_cast<size_t>(scales[0]) == rows)) {
    return CodeScales{.rows = 1, .columns = columns};
  }
  if (is(tiles(rows), tiles(columns))) return CodeScales{.rows = kTile, .columns = kTile};
  return std::nullopt;
}

absl::StatusOr<std::vector<float>> ReadFloats(const Located& scales) {
  const StoredTensor& tensor = *scales.tensor;
  std::vector<std::byte> bytes(tensor.bytes.size());
  if (scales.file->file != nullptr) {
    absl::Status status = scales.file->file->Read(tensor.bytes, bytes.data());
    if (!status.ok()) return status;
  } else {
    std::memcpy(bytes.data(), tensor.bytes.data(), bytes.size());
  }
  const size_t size = DTypeSize(tensor.dtype);
  if (const std::optional<size_t> wrong = FirstNotFinite(bytes, tensor.dtype)) {
    return Contradiction(scales, absl::StrCat("has NaN or infinity at element ", *wrong,
                                              "; must have finite scales"));
  }
  std::vector<float> values(bytes.size() / size);
  for (size_t i = 0; i < values.size(); ++i) {
    if (tensor.dtype == DType::kFloat32) {
      std::memcpy(&values[i], bytes.data() + i * size, size);
    } else {
      uint16_t half = 0;
      std::memcpy(&half, bytes.data() + i * size, size);
      values[i] = tensor.dtype == DType::kFloat16 ? FromHalf(half) : FromBFloat16(half);
    }
  }
  return values;
}

absl::StatusOr<CodeScales> ReadScales(const Located& scales, const Located& codes) {
  const StoredTensor& tensor = *scales.tensor;
  const DType dtype = tensor.dtype;
  if (tensor.decoder != nullptr ||
      (dtype != DType::kFloat32 && dtype != DType::kFloat16 && dtype != DType::kBFloat16)) {
    return Unsupported(scales.file->path,
                       absl::StrCat("tensor ", Printable(tensor.name), ", which has the scales of ",
                                    Printable(codes.tensor->name), ", has dtype ",
                                    std::string(DTypeName(dtype)), "; must be F32, F16 or BF16"));
  }
  const std::vector<int64_t>& shape = codes.tensor->shape;
  const auto rows = static_cast<size_t>(shape.empty() ? 1 : shape.front());
  const size_t columns = rows == 0 ? 0 : codes.tensor->bytes.size() / rows;
  std::optional<CodeScales> parts = PartsOf(tensor.shape, rows, columns);
  if (!parts.has_value() || rows == 0 || columns == 0) {
    return Contradiction(scales,
                         absl::StrCat("has shape ", ShapeText(tensor.shape),
                                      "; must have one scale, or one "
                                      "for each row or for each tile of 128 x 128 of ",
                                      Printable(codes.tensor->name), " ", ShapeText(shape)));
  }
  absl::StatusOr<std::vector<float>> values = ReadFloats(scales);
  if (!values.ok()) return values.status();
  parts->values = *std::move(values);
  return *std::move(parts);
}

}  // namespace

Located TakeValues(StoredTensors& stored, std::string_view name) {
  const std::string_view stem = StemOf(name);
  if (!stem.empty()) {
    for (const std::string_view suffix : kUnused) Take(stored, Join(stem, suffix));
  }
  return Take(stored, std::string(name));
}

std::string_view TakeMarks(StoredTensors& stored) {
  Take(stored, "spiece_model");
  if (Take(stored, "scaled_fp8").tensor != nullptr) {
    return "the file's tensor scaled_fp8 says that it has";
  }
  for (const auto& [name, located] : stored) {
    if (!IsCode(located.tensor->dtype)) continue;
    const std::string_view stem = StemOf(name);
    const bool has = !stem.empty() && std::any_of(std::begin(kScales), std::end(kScales),
                                                  [&](std::string_view suffix) {
                                                    return stored.contains(Join(stem, suffix));
                                                  });
    if (has) return "other matrices have them";
  }
  return "";
}

absl::StatusOr<std::shared_ptr<const TensorDecoder>> TakeDecoder(StoredTensors& stored,
                                                                 std::string_view name,
                                                                 const Located& values,
                                                                 std::string_view scaled) {
  const StoredTensor& tensor = *values.tensor;
  if (tensor.decoder != nullptr || !IsCode(tensor.dtype)) return tensor.decoder;
  if (const std::string_view stem = StemOf(name); !stem.empty()) {
    for (const std::string_view suffix : kScales) {
      const Located scales = Take(stored, Join(stem, suffix));
      if (scales.tensor == nullptr) continue;
      absl::StatusOr<CodeScales> read = ReadScales(scales, values);
      if (!read.ok()) return read.status();
      const auto rows = static_cast<size_t>(tensor.shape.empty() ? 1 : tensor.shape.front());
      return MakeCodeDecoder(tensor.dtype, tensor.bytes.size() / rows, *std::move(read));
    }
  }
  if (tensor.dtype == DType::kInt8 || !scaled.empty()) {
    return Contradiction(
        values, absl::StrCat("has dtype ", std::string(DTypeName(tensor.dtype)), " and no scales",
                             scaled.empty() ? "" : ", although ", std::string(scaled),
                             "; must have weight_scale or scale_weight beside it"));
  }
  const size_t columns = static_cast<size_t>(tensor.shape.empty() ? 1 : tensor.shape.back());
  return MakeCodeDecoder(tensor.dtype, columns, {});
}

}  // namespace wan
