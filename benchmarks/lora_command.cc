// Measures how long it takes to change a LoRA while the transformer's weights are on the device.
// The command switches between two random LoRAs, which change every matrix of the blocks, and
// finally to none.
//
//   wan_bench lora --model synthetic:t2v-a14b --rank 64 --device cuda:0 --at-most 1
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/bench_flags.h"
#include "benchmarks/card_watch.h"
#include "benchmarks/commands.h"
#include "c10/core/InferenceMode.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/models/wan/transformer.h"
#include "engine/weights/lora_patch.h"

namespace wan {
namespace {

struct LoraSettings {
  std::string model = "synthetic:t2v-a14b";
  std::string device = "cuda:0";
  std::string dtype = "bf16";
  int64_t rank = 64;
  int repeats = 3;
  double at_most = 0;  // maximum number of seconds that a switch may take; 0: no limit
};

bool IsMatrixOfABlock(const TensorInfo& tensor) {
  return tensor.name.starts_with("blocks.") && tensor.name.ends_with(".weight") &&
         tensor.shape.size() == 2;
}

StoredTensor Stored(const at::Tensor& tensor) {
  StoredTensor stored;
  stored.dtype = DType::kBFloat16;
  stored.shape = tensor.sizes().vec();
  stored.bytes = {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
  return stored;
}

// The matrices are in bf16, as in most files.
std::shared_ptr<const LoraWeights> RandomLora(const WeightSource& source, int64_t rank,
                                              WeightMover& mover) {
  const auto bf16 = at::TensorOptions().dtype(at::kBFloat16);
  LoraFile file;
  std::vector<at::Tensor> factors;
  for (const TensorInfo& tensor : source.Tensors()) {
    if (!IsMatrixOfABlock(tensor)) continue;
    LoraTerm& term = file.terms.emplace_back();
    term.target = tensor.name;
    term.rows = tensor.shape[0];
    term.columns = tensor.shape[1];
    term.first = {.rows = term.rows, .columns = term.columns, .rank = rank};
    term.first.up =
        Stored(factors.emplace_back(at::zeros({term.rows, rank}, bf16).normal_(0, 0.01)));
    term.first.down =
        Stored(factors.emplace_back(at::zeros({rank, term.columns}, bf16).normal_(0, 0.01)));
  }
  file.rank = rank;
  return LoraWeights::Load(file, mover);
}

// Returns a checksum of the weights' bits.
uint64_t Checksum(const ComponentWeights& weights, const WeightSource& source) {
  uint64_t sum = 0;  // unsigned, because the sum wraps around
  for (const TensorInfo& info : source.Tensors()) {
    const at::Tensor tensor = weights.Find(info.name)->tensor;
    const at::ScalarType bits = tensor.element_size() == 2 ? at::kShort : at::kInt;
    sum = sum * 31 + static_cast<uint64_t>(tensor.view(bits).sum(at::kLong).item<int64_t>());
  }
  return sum;
}

class SwitchBenchmark {
 public:
  SwitchBenchmark(const LoraSettings& settings, Session& session, const WeightSource& source,
                  std::shared_ptr<ComponentWeights> weights)
      : settings_(settings),
        session_(session),
        source_(source),
        weights_(std::move(weights)),
        first_(MakePatch()),
        second_(MakePatch()) {}

  int64_t lora_bytes() const { return lora_bytes_; }

  absl::Status Run() {
    const uint64_t base = Checksum(*weights_, source_);
    const auto begin = std::chrono::steady_clock::now();
    weights_->KeepHostCopy();
    session_.Note(
        absl::StrFormat("host copy of the base, once a model: %.3f s", SecondsSince(begin)));

    double slowest = 0;
    for (int i = 0; i < settings_.repeats; ++i) {
      Change("base to LoRA", first_, WorkOf(/*restores=*/false, /*merges=*/true));
      const uint64_t first = Checksum(*weights_, source_);
      const Work between = WorkOf(/*restores=*/true, /*merges=*/true);
      slowest = std::max(slowest, Change("LoRA to another", second_, between));
      if (Checksum(*weights_, source_) == first) {
        return absl::InternalError("the switch changed nothing");
      }
      slowest = std::max(slowest, Change("LoRA back", first_, between));
      if (Checksum(*weights_, source_) != first) {
        return absl::InternalError("the same LoRA gives other weights the second time");
      }
      Change("the same LoRA", first_, std::nullopt);
      Change("LoRA to base", nullptr, WorkOf(/*restores=*/true, /*merges=*/false));
      if (Checksum(*weights_, source_) != base) {
        return absl::InternalError("the base's weights are not what they were");
      }
    }
    session_.Note(absl::StrFormat(
        "slowest switch between two LoRAs: %.3f s; the base is bit for bit what it was", slowest));
    if (!status_.ok()) return status_;
    if (settings_.at_most > 0 && slowest >= settings_.at_most) {
      return absl::InternalError(
          absl::StrFormat("a switch took %.3f s, allowed are %.3f s", slowest, settings_.at_most));
    }
    return absl::OkStatus();
  }

 private:
  std::shared_ptr<const WeightPatch> MakePatch() {
    const ScaledLora lora{RandomLora(source_, settings_.rank, weights_->mover()), 1};
    lora_bytes_ = lora.weights->bytes();
    return MakeLoraPatch(*weights_, std::span(&lora, 1));
  }

  // Returns the work of a change from one LoRA to another. `restores`: a LoRA was merged before, so
  // the original matrices are copied from host memory. `merges`: the new LoRA's matrices are
  // copied, and their product is added in fp32.
  Work WorkOf(bool restores, bool merges) const {
    double elements = 0;
    double bytes = 0;
    for (const TensorInfo& info : source_.Tensors()) {
      if (!IsMatrixOfABlock(info)) continue;
      const at::Tensor tensor = weights_->Find(info.name)->tensor;
      elements += static_cast<double>(tensor.numel());
      bytes += static_cast<double>(tensor.nbytes());
    }
    Work work{.precision = "fp32"};
    double& copied = session_.device().is_cpu() ? work.bytes : work.upload_bytes;
    if (restores) copied += bytes;
    if (merges) {
      copied += static_cast<double>(lora_bytes_);
      work.product_flop = 2 * static_cast<double>(settings_.rank) * elements;
      work.bytes += 2 * bytes;  // each weight is read and written
    }
    return work;
  }

  // Adds a row with the seconds until the last weight has its new value. `work` is nullopt if the
  // change needs no work.
  double Change(const char* name, const std::shared_ptr<const WeightPatch>& patch,
                const std::optional<Work>& work) {
    const at::Device device = session_.device();
    Synchronize(device);
    const int64_t before = CurrentBytes(device);
    ResetPeakBytes(device);
    CardWatch watch(session_.card());
    const auto begin = std::chrono::steady_clock::now();
    weights_->SetPatch(patch);
    weights_->FinishPatch().IgnoreError();  // The call cannot fail, because nobody requests a stop.
    Synchronize(device);
    const double seconds = SecondsSince(begin);
    BenchRow row{.name = absl::StrCat(settings_.model, " rank ", settings_.rank, ": ", name),
                 .timing = Timing{seconds, seconds, seconds, 1},
                 .work = work,
                 .card = watch.Finish()};
    row.figures = {{"extra_device_gib", static_cast<double>(PeakBytes(device) - before) / kGiB}};
    status_.Update(session_.Add(std::move(row)));
    return seconds;
  }

  const LoraSettings& settings_;
  Session& session_;
  const WeightSource& source_;
  const std::shared_ptr<ComponentWeights> weights_;
  int64_t lora_bytes_ = 0;
  absl::Status status_;  // the first error of printing a row
  const std::shared_ptr<const WeightPatch> first_;
  const std::shared_ptr<const WeightPatch> second_;
};

absl::StatusOr<bool> Run(const LoraSettings& settings, Session& session) {
  const c10::InferenceMode inference;
  const absl::StatusOr<at::Device> device = session.Open(settings.device);
  if (!device.ok()) return device.status();
  if (absl::Status status = session.FindCeilings(); !status.ok()) return status;
  const auto checkpoint = Checkpoint::Open(settings.model);
  if (!checkpoint.ok()) return checkpoint.status();
  const WeightSource& source = (*checkpoint)->transformer();
  const auto weights =
      std::make_shared<ComponentWeights>(MakeWeightMover(*device), ComponentWeights::Home::kDevice);
  const auto transformer =
      LoadWanTransformer(source, (*checkpoint)->transformer_config(),
                         {.device = *device,
                          .dtype = settings.dtype == "fp32" ? at::kFloat : at::kBFloat16,
                          .weights = weights});
  if (!transformer.ok()) return transformer.status();
  Synchronize(*device);

  SwitchBenchmark benchmark(settings, session, source, weights);
  session.Note(absl::StrFormat(
      "%s, %.2f GB of weights in %s; two LoRAs of rank %d, %.2f GB each", settings.model,
      static_cast<double>((*transformer)->WeightBytes()) / 1e9, settings.dtype, settings.rank,
      static_cast<double>(benchmark.lora_bytes()) / 1e9));
  if (absl::Status status = benchmark.Run(); !status.ok()) return status;
  return true;
}

}  // namespace

BenchCommand AddLora(CLI::App& app) {
  const auto settings = std::make_shared<LoraSettings>();
  AddModelFlag(app, settings->model, "checkpoint, or synthetic:NAME, whose transformer is changed");
  AddDeviceFlag(app, settings->device);
  AddDtypeFlag(app, settings->dtype, "dtype of the weights");
  app.add_option("--rank", settings->rank, "rank of both LoRAs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  AddRepeatsFlag(app, settings->repeats);
  app.add_option("--at-most", settings->at_most, "seconds; a slower switch fails the run")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
