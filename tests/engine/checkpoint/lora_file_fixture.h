// A LoRA file in the making, for a small transformer.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/checkpoint/lora_file.h"
#include "tests/engine/formats/files.h"

namespace wan {

inline TransformerConfig SmallConfig() {
  TransformerConfig config;
  config.dim = 8;
  config.ffn_dim = 12;
  config.freq_dim = 4;
  config.num_heads = 2;
  config.num_layers = 2;
  config.in_channels = 3;
  config.out_channels = 3;
  config.text_dim = 6;
  config.text_len = 5;
  config.patch_size = {1, 2, 2};
  return config;
}

// Every byte of the data is zero unless a test says otherwise, so F32 scalars are 0.
class LoraFileTest : public ::testing::Test {
 protected:
  void Add(const std::string& name, const std::vector<int64_t>& shape,
           const std::string& dtype = "F32", std::string bytes = "") {
    int64_t size = dtype == "F32" ? 4 : 2;
    for (const int64_t extent : shape) size *= extent;
    bytes.resize(static_cast<size_t>(size));
    header_[name] = {{"dtype", dtype},
                     {"shape", shape},
                     {"data_offsets", {data_.size(), data_.size() + bytes.size()}}};
    data_ += bytes;
  }

  void AddPair(const std::string& module, int64_t rows, int64_t rank, int64_t columns) {
    Add(module + ".lora_A.weight", {rank, columns});
    Add(module + ".lora_B.weight", {rows, rank});
  }

  static std::string Scalar(float value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  absl::StatusOr<LoraFile> Read() {
    testing::WriteFile(path_, testing::SafetensorsBytes(header_.dump(), data_));
    return ReadLoraFile(path_, SmallConfig());
  }

  // The file is refused, and the message names it.
  void ExpectRefused(absl::StatusCode code, const std::vector<std::string>& parts) {
    const absl::Status status = Read().status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(path_));
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(part));
    }
  }

  testing::TempFolder folder_;
  std::string path_ = (folder_ / "lora.safetensors").string();
  nlohmann::json header_ = nlohmann::json::object();
  std::string data_;
};

}  // namespace wan
