// Damages a checkpoint as a bad disk or a failed training does: its form is right, a value is not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>

namespace wan::support {

// Makes the first value of an F32 tensor in a safetensors file NaN. Throws if there is none.
inline void MakeFirstValueNan(const std::filesystem::path& path, const std::string& tensor) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  uint64_t header_bytes = 0;
  file.read(reinterpret_cast<char*>(&header_bytes), sizeof(header_bytes));
  std::string header(header_bytes, ' ');
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  const std::string offsets = "\"data_offsets\":[";
  const size_t entry = header.find("\"" + tensor + "\":{");
  const size_t at = entry == std::string::npos ? entry : header.find(offsets, entry);
  if (!file || at == std::string::npos || header.find("\"F32\"", entry) > header.find('}', entry)) {
    throw std::runtime_error(path.string() + " has no F32 tensor " + tensor);
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const uint64_t begin = std::stoull(header.substr(at + offsets.size()));
  file.seekp(static_cast<std::streamoff>(sizeof(header_bytes) + header_bytes + begin));
  file.write(reinterpret_cast<const char*>(&nan), sizeof(nan));
}

}  // namespace wan::support
