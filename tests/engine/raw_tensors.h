// Reads .safetensors files in tests, with no code of the product.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace wan {

inline std::string ReadFileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

struct RawTensor {
  std::string dtype;  // "F32"
  std::vector<int64_t> shape;
  std::string bytes;

  template <typename T>
  std::vector<T> As() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

// The tensors of a file by name. Throws if the file is not as the format says.
inline std::map<std::string, RawTensor> ReadRawTensors(const std::string& path) {
  const std::string file = ReadFileBytes(path);
  uint64_t header_size = 0;
  std::memcpy(&header_size, file.data(), sizeof header_size);
  const nlohmann::json header = nlohmann::json::parse(file.substr(8, header_size));
  std::map<std::string, RawTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const uint64_t begin = entry["data_offsets"][0];
    const uint64_t end = entry["data_offsets"][1];
    tensors[name] = {entry["dtype"], entry["shape"],
                     file.substr(8 + header_size + begin, end - begin)};
  }
  return tensors;
}

}  // namespace wan
