#include "engine/weights/weight_loader.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/checkpoint/weight_tables.h"
#include "engine/device/torch_errors.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/scaled_codes.h"
#include "tests/engine/formats/files.h"
#include "tests/engine/in_memory_weights.h"
#include "tests/engine/weights/slow_mover.h"
#include "tests/support/peak_allocator.h"

namespace wan {
namespace {

const std::vector<TensorSpec> kSpecs = {{"a.weight", "a.weight", {64, 100}},
                                        {"b.weight", "b.weight", {64, 100}},
                                        {"large.weight", "large.weight", {9000, 1024}},
                                        {"norm.weight", "norm.weight", {100}}};

at::Tensor Load(const char* name, uint64_t seed = 0) {
  const auto source = MakeSyntheticWeights(kSpecs, DType::kFloat32, "synthetic:x", seed);
  WeightLoader loader(*source, at::kCPU, at::kFloat);
  at::Tensor tensor = loader.Get(name, source->Find(name)->shape);
  EXPECT_TRUE(loader.status().ok()) << loader.status();
  EXPECT_EQ(loader.bytes(), static_cast<int64_t>(tensor.nbytes()));
  return tensor;
}

TEST(SyntheticWeightsTest, DependOnNameAndSeedAlone) {
  EXPECT_TRUE(at::equal(Load("a.weight"), Load("a.weight")));
  EXPECT_FALSE(at::equal(Load("a.weight"), Load("b.weight")));
  // Two experts have the same names.
  EXPECT_FALSE(at::equal(Load("a.weight", 0), Load("a.weight", 1)));
}

TEST(SyntheticWeightsTest, KeepActivationsInRange) {
  // Columns are the inputs: 1 / sqrt(100).
  EXPECT_NEAR(Load("a.weight").std().item<double>(), 0.1, 0.005);
  EXPECT_TRUE(at::equal(Load("norm.weight"), at::ones({100})));
}

TEST(SyntheticWeightsTest, RowsDifferWhereNumbersRepeat) {
  const at::Tensor large = Load("large.weight");
  EXPECT_NEAR(large.std().item<double>(), 1.0 / 32, 0.0005);
  const at::Tensor last = large[large.size(0) - 1];
  for (int64_t row = 0; row + 1 < large.size(0); ++row) {
    ASSERT_FALSE(at::equal(large[row], last)) << "row " << row;
  }
}

TEST(WeightLoaderTest, KeepsTheFirstProblemAndGivesZeros) {
  const auto source = MakeSyntheticWeights(kSpecs, DType::kFloat32, "synthetic:x");
  WeightLoader loader(*source, at::kCPU, at::kFloat);
  const at::Tensor wrong = loader.Get("a.weight", {64, 101});
  EXPECT_EQ(wrong.sizes(), at::IntArrayRef({64, 101}));
  EXPECT_FALSE(wrong.any().item<bool>());
  loader.Get("missing", {1});
  EXPECT_EQ(loader.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(loader.status().message()), ::testing::HasSubstr("a.weight"));
}

// Values that are no symmetric pattern in any order.
void PutTensor(InMemoryWeights& weights, const std::string& name, DType dtype,
               const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::string bytes(static_cast<size_t>(count) * DTypeSize(dtype), '\0');
  // Every other byte, so that no number is infinite or none.
  for (size_t i = 0; i < bytes.size(); i += 2) bytes[i] = static_cast<char>(i * 31 + i / 257);
  const size_t size = bytes.size();
  weights.Put({.name = name, .dtype = dtype, .shape = shape, .bytes = size, .file = "memory"},
              std::move(bytes));
}

InMemoryWeights MixedWeights() {
  InMemoryWeights weights;
  PutTensor(weights, "same", DType::kBFloat16, {300, 70});
  PutTensor(weights, "other_dtype", DType::kFloat32, {300, 70});
  PutTensor(weights, "part_0", DType::kFloat16, {11, 30});
  PutTensor(weights, "part_1", DType::kFloat16, {11, 30});
  PutTensor(weights, "kernel", DType::kBFloat16, {4, 6, 3, 3});
  PutTensor(weights, "changed", DType::kFloat32, {6, 10});
  return weights;
}

// Of two groups; the tensors as `loader` has them when it has finished.
std::vector<at::Tensor> LoadMixed(WeightLoader& loader) {
  const std::vector<std::string> parts = {"part_0", "part_1"};
  std::vector<at::Tensor> got = {loader.Get("same", {300, 70}),
                                 loader.Get("other_dtype", {300, 70}),
                                 loader.GetStacked(parts, {11, 30}, at::kFloat)};
  loader.BeginGroup();
  got.push_back(loader.GetKernel("kernel", {4, 6, 3, 3}, at::MemoryFormat::ChannelsLast));
  got.push_back(loader.Get("changed", {6, 10}, at::kFloat));
  loader.Change([table = got.back()] { table.select(0, 1).add_(1); });
  loader.Change([table = got.back()] { table.select(0, 1).mul_(2); });
  return got;
}

// What a device gets later by way of a second queue is what a CPU has at once.
TEST(WeightLoaderTest, UploadsGiveWhatACpuReads) {
  const InMemoryWeights source = MixedWeights();
  WeightLoader direct(source, at::kCPU, at::kBFloat16);
  const std::vector<at::Tensor> expected = LoadMixed(direct);
  ASSERT_TRUE(direct.status().ok()) << direct.status();
  for (const auto home : {ComponentWeights::Home::kDevice, ComponentWeights::Home::kHost}) {
    const auto weights = std::make_shared<ComponentWeights>(std::make_unique<SlowMover>(), home);
    WeightLoader loader(source, at::kCPU, at::kBFloat16, weights);
    const std::vector<at::Tensor> got = LoadMixed(loader);
    EXPECT_EQ(loader.Finish(), weights);
    ASSERT_TRUE(loader.status().ok()) << loader.status();
    weights->BringUp();
    weights->UseAll();
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(got[i].strides(), expected[i].strides()) << i;
      EXPECT_TRUE(at::equal(got[i], expected[i])) << i;
    }
  }
}

TEST(WeightLoaderTest, AnUploadThatFailsIsSaidWhenTheLoadingEnds) {
  const testing::TempFolder folder;
  const std::string path = folder / "a.safetensors";
  testing::WriteFile(path, testing::SafetensorsBytes(
                               R"({"a":{"dtype":"F32","shape":[2000],"data_offsets":[0,8000]}})",
                               std::string(8000, '\1')));
  TensorFiles files;
  files.files.push_back(*ReadSafetensors(path));
  std::vector<absl::Status> problems;
  const auto source =
      MakeFileWeights(files, {{"a", "a", {2000}}}, Naming::kUpstream, path, problems);
  ASSERT_TRUE(problems.empty());
  std::filesystem::resize_file(path, 1000);
  const auto weights = std::make_shared<ComponentWeights>(std::make_unique<SlowMover>(),
                                                          ComponentWeights::Home::kDevice);
  WeightLoader loader(*source, at::kCPU, at::kBFloat16, weights);
  loader.Get("a", {2000});
  loader.Finish();
  EXPECT_EQ(loader.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(loader.status().message()), ::testing::HasSubstr(path));
}

std::unique_ptr<WeightMover> MoverOf(bool has_own_memory) {
  if (has_own_memory) return std::make_unique<SlowMover>();
  return MakeWeightMover(at::kCPU);
}

void ExpectEqual(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(got[i].strides(), expected[i].strides()) << i;
    EXPECT_TRUE(at::equal(got[i], expected[i])) << i;
  }
}

// The tensor objects stay, their memory goes, nothing is kept on the host, and the bits come back.
TEST(WeightLoaderTest, WhatIsDroppedIsReadAgainBitForBit) {
  using Home = ComponentWeights::Home;
  const auto source = std::make_shared<const InMemoryWeights>(MixedWeights());
  WeightLoader direct(*source, at::kCPU, at::kBFloat16);
  const std::vector<at::Tensor> expected = LoadMixed(direct);
  for (const bool has_own_memory : {false, true}) {
    for (const Home home : {Home::kDevice, Home::kDisk}) {
      const auto weights =
          std::make_shared<ComponentWeights>(MoverOf(has_own_memory), home, source);
      WeightLoader loader(*source, at::kCPU, at::kBFloat16, weights);
      const std::vector<at::Tensor> got = LoadMixed(loader);
      loader.Finish();
      ASSERT_TRUE(loader.status().ok()) << loader.status();
      for (int round = 0; round < 2; ++round) {
        weights->Drop();
        EXPECT_EQ(weights->DeviceBytes(), 0);
        EXPECT_EQ(weights->HostBytes(), 0);
        for (const at::Tensor& tensor : got) EXPECT_EQ(tensor.const_data_ptr(), nullptr);
        weights->BringUp();
        weights->UseAll();
        EXPECT_EQ(weights->DeviceBytes(), weights->Sizes().total);
        ExpectEqual(got, expected);
      }
      // A later plan may want them in host memory.
      weights->Drop();
      weights->KeepHostCopy();
      EXPECT_EQ(weights->DeviceBytes(), 0);
      EXPECT_EQ(weights->HostBytes(), weights->Sizes().total);
      weights->Stream();
      weights->Use(1, 1);
      ExpectEqual(got, expected);
    }
  }
}

// The matrices of MixedWeights in 8 bits.
std::vector<RoundedRows> LoadRounded(WeightLoader& loader) {
  const std::vector<std::string> parts = {"part_0", "part_1"};
  std::vector<RoundedRows> got = {loader.GetRounded("same", {300, 70}),
                                  loader.GetRounded("other_dtype", {300, 70})};
  loader.BeginGroup();
  got.push_back(loader.GetRoundedStacked(parts, {11, 30}));
  got.push_back(loader.GetRounded("large", {1030, 2000}));
  return got;
}

RoundedRows Rounded(const at::Tensor& matrix) {
  RoundedRows rounded = MakeRounded(matrix.size(0), matrix.size(1), at::kCPU);
  RoundRows(matrix, rounded);
  return rounded;
}

void ExpectEqual(const std::vector<RoundedRows>& got, const std::vector<RoundedRows>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(at::equal(got[i].codes.view(at::kByte), expected[i].codes.view(at::kByte))) << i;
    EXPECT_TRUE(at::equal(got[i].scales, expected[i].scales)) << i;
  }
}

// Rounded from the loader's dtype, whatever the file's: on a CPU, by way of a second queue, read
// again after they were dropped, and copied from the host.
TEST(WeightLoaderTest, KeepsTheBitsOfRoundingAConvertedMatrix) {
  using Home = ComponentWeights::Home;
  InMemoryWeights mixed = MixedWeights();
  // A CPU rounds it in two parts.
  PutTensor(mixed, "large", DType::kFloat16, {1030, 2000});
  const auto source = std::make_shared<const InMemoryWeights>(std::move(mixed));
  const std::vector<std::string> parts = {"part_0", "part_1"};
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    WeightLoader plain(*source, at::kCPU, dtype);
    const std::vector<RoundedRows> expected = {Rounded(plain.Get("same", {300, 70})),
                                               Rounded(plain.Get("other_dtype", {300, 70})),
                                               Rounded(plain.GetStacked(parts, {11, 30}, dtype)),
                                               Rounded(plain.Get("large", {1030, 2000}))};
    for (const bool has_own_memory : {false, true}) {
      for (const Home home : {Home::kDevice, Home::kHost, Home::kDisk}) {
        const auto weights =
            std::make_shared<ComponentWeights>(MoverOf(has_own_memory), home, source);
        WeightLoader loader(*source, at::kCPU, dtype, weights);
        const std::vector<RoundedRows> got = LoadRounded(loader);
        loader.Finish();
        ASSERT_TRUE(loader.status().ok()) << loader.status();
        int64_t bytes = 0;
        for (const RoundedRows& rows : got) {
          bytes += rows.codes.numel() + static_cast<int64_t>(rows.scales.nbytes());
        }
        EXPECT_EQ(loader.bytes(), bytes);
        for (int round = 0; round < 2; ++round) {
          weights->BringUp();
          weights->UseAll();
          ExpectEqual(got, expected);
          weights->Drop();
        }
        weights->Stream();
        weights->Use(1, 1);
        ExpectEqual(got, expected);
        EXPECT_EQ(weights->HostBytes(), weights->Sizes().total);
      }
    }
  }
}

TEST(WeightLoaderTest, RoundsToTheCodesThatAreAskedFor) {
  const InMemoryWeights source = MixedWeights();
  WeightLoader plain(source, at::kCPU, at::kBFloat16);
  const at::Tensor matrix = plain.Get("same", {300, 70});
  const RoundedRows expected = MakeRounded(300, 70, at::kCPU, at::kChar);
  RoundRows(matrix, expected);
  WeightLoader loader(source, at::kCPU, at::kBFloat16);
  const RoundedRows got = loader.GetRounded("same", {300, 70}, at::kChar);
  loader.Finish();
  ASSERT_TRUE(loader.status().ok()) << loader.status();
  EXPECT_EQ(got.codes.scalar_type(), at::kChar);
  ExpectEqual({got}, {expected});
}

// Matrices of codes with scales; in memory.
class CodedWeights final : public WeightSource {
 public:
  void Put(const std::string& name, const at::Tensor& codes, DType code, CodeScales scales) {
    const auto columns = static_cast<size_t>(codes.size(1));
    TensorBytes bytes{
        .bytes = std::span(static_cast<const std::byte*>(codes.const_data_ptr()), codes.nbytes()),
        .owner = std::make_shared<at::Tensor>(codes),
        .decoder = MakeCodeDecoder(code, columns, std::move(scales))};
    bytes.end = 2 * codes.nbytes();
    infos_.push_back({.name = name,
                      .dtype = DType::kBFloat16,
                      .shape = codes.sizes().vec(),
                      .bytes = bytes.end,
                      .file = "codes"});
    contents_[name] = std::move(bytes);
  }

  const std::vector<TensorInfo>& Tensors() const override { return infos_; }
  const TensorInfo* Find(std::string_view name) const override {
    const auto found = std::find_if(infos_.begin(), infos_.end(),
                                    [&](const TensorInfo& info) { return info.name == name; });
    return found == infos_.end() ? nullptr : &*found;
  }
  absl::StatusOr<TensorBytes> Read(const TensorInfo& tensor) const override {
    return contents_.at(tensor.name);
  }

 private:
  std::vector<TensorInfo> infos_;
  std::map<std::string, TensorBytes> contents_;
};

// A file's codes with the scales of their rows are taken as they are: on a CPU, by way of a second
// queue, and read again after they were dropped.
TEST(WeightLoaderTest, TakesTheFilesCodesAndScales) {
  constexpr int64_t kRows = 6;
  constexpr int64_t kColumns = 5;
  const std::vector<int64_t> shape = {kRows, kColumns};
  const at::Tensor codes = at::arange(1, 1 + kRows * kColumns).to(at::kByte).view(shape);
  const std::vector<float> of_rows = {0.5F, 1, 2, 3, 4.25F, -1};
  const auto source = std::make_shared<CodedWeights>();
  source->Put("rows", codes, DType::kFloat8E4M3, {1, kColumns, of_rows});
  source->Put("one", codes, DType::kFloat8E4M3, {kRows, kColumns, {0.03F}});
  source->Put("plain", codes, DType::kFloat8E4M3, {});
  source->Put("whole", codes, DType::kInt8, {1, kColumns, of_rows});
  const at::Tensor e4m3 = codes.view(at::kFloat8_e4m3fn);
  const at::Tensor scales = at::tensor(of_rows);
  const std::vector<RoundedRows> expected = {
      {at::cat({codes, codes}).view(at::kFloat8_e4m3fn),
       at::cat({scales, at::full({kRows}, 0.03F, at::kFloat)})},
      {e4m3, at::ones({kRows}, at::kFloat)},
      {codes.view(at::kChar), scales}};
  const std::vector<std::string> stacked = {"rows", "one"};
  for (const bool slow : {false, true}) {
    const auto weights =
        std::make_shared<ComponentWeights>(MoverOf(slow), ComponentWeights::Home::kDisk, source);
    WeightLoader loader(*source, at::kCPU, at::kBFloat16, weights);
    const std::vector<RoundedRows> got = {loader.GetRoundedStacked(stacked, shape),
                                          loader.GetRounded("plain", shape),
                                          loader.GetRounded("whole", shape, at::kChar)};
    loader.Finish();
    ASSERT_TRUE(loader.status().ok()) << loader.status();
    for (int round = 0; round < 2; ++round) {
      weights->BringUp();
      weights->UseAll();
      ExpectEqual(got, expected);
      weights->Drop();
    }
  }
}

// Codes of tiles, and those of another dtype than the weights are kept in, are widened and rounded.
TEST(WeightLoaderTest, RoundsOtherCodesAgain) {
  constexpr int64_t kRows = 130;
  constexpr int64_t kColumns = 140;
  const std::vector<int64_t> shape = {kRows, kColumns};
  const at::Tensor codes = at::arange(kRows * kColumns).remainder(120).to(at::kByte).view(shape);
  CodedWeights source;
  source.Put("tiles", codes, DType::kFloat8E4M3, {128, 128, {1, 2, 3, 4}});
  source.Put("whole", codes, DType::kInt8, {kRows, kColumns, {0.5F}});
  source.Put("e5m2", codes, DType::kFloat8E5M2, {kRows, kColumns, {0.5F}});
  for (const std::string name : {"tiles", "whole", "e5m2"}) {
    WeightLoader plain(source, at::kCPU, at::kBFloat16);
    const RoundedRows expected = Rounded(plain.Get(name, shape));
    WeightLoader loader(source, at::kCPU, at::kBFloat16);
    ExpectEqual({loader.GetRounded(name, shape)}, {expected});
  }
}

// The plan counts on 32 MiB for reading weights on a CPU.
TEST(WeightLoaderTest, LittleOfAMatrixWaitsForItsRounding) {
  InMemoryWeights source;
  PutTensor(source, "large", DType::kFloat16, {16'000, 1024});
  PeakAllocator memory;
  WeightLoader loader(source, at::kCPU, at::kFloat);
  const RoundedRows rounded = loader.GetRounded("large", {16'000, 1024});
  loader.Finish();
  ASSERT_TRUE(loader.status().ok()) << loader.status();
  EXPECT_LE(memory.peak(), memory.held() + (uint64_t{32} << 20));
}

TEST(WeightLoaderTest, AMatrixThatCannotBeRoundedIsZerosAndNamed) {
  const InMemoryWeights source = MixedWeights();
  WeightLoader loader(source, at::kCPU, at::kBFloat16);
  const RoundedRows wrong = loader.GetRounded("same", {300, 71});
  EXPECT_FALSE(wrong.ToFloat().any().item<bool>());
  EXPECT_EQ(loader.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(loader.status().message()), ::testing::HasSubstr("same"));
}

TEST(WeightLoaderTest, SyntheticMatricesAreRoundedAsOthers) {
  const std::shared_ptr<const WeightSource> source =
      MakeSyntheticWeights(kSpecs, DType::kFloat32, "synthetic:x", 3);
  WeightLoader plain(*source, at::kCPU, at::kBFloat16);
  const std::vector<RoundedRows> expected = {Rounded(plain.Get("large.weight", {9000, 1024}))};
  const auto weights = std::make_shared<ComponentWeights>(MakeWeightMover(at::kCPU),
                                                          ComponentWeights::Home::kDevice, source);
  WeightLoader loader(*source, at::kCPU, at::kBFloat16, weights);
  const std::vector<RoundedRows> got = {loader.GetRounded("large.weight", {9000, 1024})};
  loader.Finish();
  ExpectEqual(got, expected);
  weights->Drop();
  weights->BringUp();
  ExpectEqual(got, expected);
}

TEST(WeightLoaderTest, SyntheticWeightsAreDrawnAgain) {
  const std::shared_ptr<const WeightSource> source =
      MakeSyntheticWeights(kSpecs, DType::kFloat32, "synthetic:x", 3);
  const auto weights = std::make_shared<ComponentWeights>(MakeWeightMover(at::kCPU),
                                                          ComponentWeights::Home::kDevice, source);
  WeightLoader loader(*source, at::kCPU, at::kFloat, weights);
  const at::Tensor got = loader.Get("a.weight", {64, 100});
  loader.Finish();
  const at::Tensor expected = got.clone();
  weights->Drop();
  EXPECT_EQ(got.const_data_ptr(), nullptr);
  weights->BringUp();
  EXPECT_TRUE(at::equal(got, expected));
}

TEST(WeightLoaderTest, WithoutASourceTheyAreParkedInsteadOfDropped) {
  const InMemoryWeights source = MixedWeights();
  const auto weights = std::make_shared<ComponentWeights>(MakeWeightMover(at::kCPU),
                                                          ComponentWeights::Home::kDevice);
  WeightLoader loader(source, at::kCPU, at::kBFloat16, weights);
  const std::vector<at::Tensor> got = LoadMixed(loader);
  loader.Finish();
  const at::Tensor expected = got[0].clone();
  weights->Drop();
  EXPECT_EQ(weights->HostBytes(), weights->Sizes().total);
  weights->BringUp();
  EXPECT_TRUE(at::equal(got[0], expected));
  EXPECT_THROW(ComponentWeights(MakeWeightMover(at::kCPU), ComponentWeights::Home::kDisk),
               c10::Error);
}

class WeightFileTest : public ::testing::TestWithParam<bool> {
 protected:
  WeightFileTest() {
    testing::WriteFile(path_, Content());
    TensorFiles files;
    files.files.push_back(*ReadSafetensors(path_));
    std::vector<absl::Status> problems;
    const std::shared_ptr<const WeightSource> source =
        MakeFileWeights(files, {{"a", "a", {2000}}}, Naming::kUpstream, path_, problems);
    weights_ = std::make_shared<ComponentWeights>(MoverOf(GetParam()),
                                                  ComponentWeights::Home::kDisk, source);
    WeightLoader loader(*source, at::kCPU, at::kBFloat16, weights_);
    tensor_ = loader.Get("a", {2000});
    loader.Finish();
    EXPECT_TRUE(loader.status().ok()) << loader.status();
  }

  static std::string Content() {
    return testing::SafetensorsBytes(
        R"({"a":{"dtype":"F32","shape":[2000],"data_offsets":[0,8000]}})", std::string(8000, '\1'));
  }

  absl::Status BringUp(const std::stop_token& stop = {}) {
    return CatchTorchErrors("x", [&] {
      weights_->BringUp(stop);
      return absl::OkStatus();
    });
  }

  const testing::TempFolder folder_;
  const std::string path_ = folder_ / "a.safetensors";
  std::shared_ptr<ComponentWeights> weights_;
  at::Tensor tensor_;
};

INSTANTIATE_TEST_SUITE_P(CpuAndOwnMemory, WeightFileTest, ::testing::Bool());

// A look into the mapping would end the process.
TEST_P(WeightFileTest, AFileThatWasShortenedMeanwhileIsDataLossThatNamesIt) {
  std::filesystem::resize_file(path_, 1000);
  const absl::Status status = BringUp();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(path_));
  EXPECT_EQ(weights_->DeviceBytes(), 0);
  EXPECT_THROW(weights_->UseAll(), c10::Error) << "they are parked";
  // Whole again, they come back.
  std::ofstream(path_, std::ios::binary | std::ios::in) << Content();
  EXPECT_TRUE(BringUp().ok());
  weights_->UseAll();
  EXPECT_GT(tensor_[1999].item<double>(), 0);
}

// It is open as long as the model is loaded.
TEST_P(WeightFileTest, AFileThatWasRemovedMeanwhileIsStillRead) {
  std::filesystem::remove(path_);
  EXPECT_TRUE(BringUp().ok());
}

TEST_P(WeightFileTest, AStopEndsTheReading) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(BringUp(stop.get_token()).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(weights_->DeviceBytes(), 0);
  EXPECT_TRUE(BringUp().ok());
}

}  // namespace
}  // namespace wan
