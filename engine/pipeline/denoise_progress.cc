#include "engine/pipeline/denoise_progress.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/device/finite_check.h"
#include "engine/formats/json_text.h"

namespace wan {
namespace {

constexpr int kFormat = 1;

size_t BytesOf(const std::vector<int64_t>& shape) {
  size_t bytes = sizeof(float);
  for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
  return bytes;
}

}  // namespace

DenoiseProgress DenoiseProgress::To(const c10::Device& device) const {
  DenoiseProgress moved{steps_done, latents.to(device), {}};
  for (const at::Tensor& tensor : history) moved.history.push_back(tensor.to(device));
  return moved;
}

bool CanBeginAt(const GenerationPlan& plan, int steps_done) {
  const auto next = static_cast<size_t>(steps_done);
  return next >= plan.steps.size() || !plan.steps[next].reuses_blocks;
}

Savepoint ToSavepoint(const DenoiseProgress& progress, const GenerationPlan& plan) {
  std::vector<at::Tensor> tensors = {progress.latents};
  if (progress.steps_done < static_cast<int>(plan.steps.size())) {
    tensors.insert(tensors.end(), progress.history.begin(), progress.history.end());
  }
  const nlohmann::json header = {{"format", kFormat},
                                 {"steps_done", progress.steps_done},
                                 {"steps", plan.steps.size()},
                                 {"shape", plan.latent_shape},
                                 {"tensors", tensors.size()}};
  Savepoint savepoint{progress.steps_done, header.dump() + "\n"};
  savepoint.bytes.reserve(savepoint.bytes.size() + tensors.size() * BytesOf(plan.latent_shape));
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor host = tensor.to(at::kCPU, at::kFloat).contiguous();
    savepoint.bytes.append(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
  }
  return savepoint;
}

absl::StatusOr<DenoiseProgress> FromSavepoint(const Savepoint& savepoint,
                                              const GenerationPlan& plan) {
  const std::string name = "the savepoint";
  const size_t end = savepoint.bytes.find('\n');
  if (end == std::string::npos) return absl::DataLossError("the savepoint has no first line");
  const absl::StatusOr<nlohmann::json> header = ParseJson(savepoint.bytes.substr(0, end), name);
  if (!header.ok()) return header.status();
  if (!header->is_object()) {
    return absl::DataLossError("the savepoint's first line is not a JSON object");
  }
  const auto steps = static_cast<int64_t>(plan.steps.size());
  JsonFields fields(*header, name);
  fields.Integer("format", kFormat, kFormat);
  DenoiseProgress progress;
  progress.steps_done = static_cast<int>(fields.Integer("steps_done", 1, steps));
  fields.Integer("steps", steps, steps);
  const std::vector<int64_t> shape = fields.Integers("shape", 1, INT32_MAX);
  const auto tensors = static_cast<size_t>(fields.Integer("tensors", 1, 16));
  if (!fields.problems().empty()) return fields.problems().front();
  if (!CanBeginAt(plan, progress.steps_done)) {
    return absl::DataLossError(absl::StrCat("the savepoint has ", progress.steps_done,
                                            " steps; the next one reuses what the last has "
                                            "computed"));
  }
  if (shape != plan.latent_shape) {
    return absl::DataLossError(absl::StrCat("the savepoint's latents have the shape ",
                                            header->at("shape").dump(), "; the job's have ",
                                            nlohmann::json(plan.latent_shape).dump()));
  }
  const size_t bytes = BytesOf(shape);
  const size_t found = savepoint.bytes.size() - (end + 1);
  if (found != tensors * bytes) {
    return absl::DataLossError(absl::StrCat("the savepoint has ", found, " bytes of tensors; ",
                                            tensors, " tensors of ", bytes, " bytes need ",
                                            tensors * bytes));
  }
  for (size_t i = 0; i < tensors; ++i) {
    at::Tensor tensor = at::empty(shape, at::kFloat);
    std::memcpy(tensor.mutable_data_ptr(), savepoint.bytes.data() + end + 1 + i * bytes, bytes);
    FiniteCheck check;
    check.Begin(tensor);
    if (!check.IsFinite()) {
      return absl::DataLossError(absl::StrCat("tensor ", i + 1, " of ", tensors,
                                              " in the savepoint has values that are not finite"));
    }
    if (i == 0) {
      progress.latents = std::move(tensor);
    } else {
      progress.history.push_back(std::move(tensor));
    }
  }
  return progress;
}

}  // namespace wan
