#include "client/wanctl/latents.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

namespace wan::client {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

struct Tensor {
  std::string shape;
  std::string_view bytes;
};

absl::StatusOr<Tensor> ReadTensor(std::string_view file) {
  absl::Status wrong = absl::InvalidArgumentError(
      "the latents are not a safetensors file with one fp32 tensor 'latents'");
  uint64_t header_size = 0;
  if (file.size() < sizeof(header_size)) return wrong;
  std::memcpy(&header_size, file.data(), sizeof(header_size));
  file.remove_prefix(sizeof(header_size));
  if (header_size > file.size()) return wrong;
  const nlohmann::json header = nlohmann::json::parse(file.substr(0, header_size), nullptr, false);
  file.remove_prefix(header_size);
  try {
    const nlohmann::json& tensor = header.at("latents");
    const uint64_t begin = tensor.at("data_offsets").at(0), end = tensor.at("data_offsets").at(1);
    if (tensor.at("dtype") != "F32" || begin > end || end > file.size()) return wrong;
    return Tensor{tensor.at("shape").dump(), file.substr(begin, end - begin)};
  } catch (const nlohmann::json::exception&) {
    return wrong;
  }
}

float At(std::string_view bytes, size_t index) {
  float value;
  std::memcpy(&value, bytes.data() + index * sizeof(float), sizeof(float));
  return value;
}

}  // namespace

absl::StatusOr<reports::ResultDifference> CompareLatents(std::string_view a, std::string_view b) {
  const absl::StatusOr<Tensor> first = ReadTensor(a), second = ReadTensor(b);
  if (!first.ok()) return first.status();
  if (!second.ok()) return second.status();
  if (first->shape != second->shape || first->bytes.size() != second->bytes.size()) {
    return absl::InvalidArgumentError("the latents have the shapes " + first->shape + " and " +
                                      second->shape);
  }
  if (first->bytes == second->bytes) return reports::ResultDifference{true, 0.0};
  double distance = 0, size = 0;
  for (size_t i = 0; i < first->bytes.size() / sizeof(float); ++i) {
    const double x = At(first->bytes, i), y = At(second->bytes, i);
    distance += (x - y) * (x - y);
    size += x * x;
  }
  reports::ResultDifference difference;
  if (size > 0) difference.relative = std::sqrt(distance / size);
  return difference;
}

}  // namespace wan::client
