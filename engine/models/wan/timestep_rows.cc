#include "engine/models/wan/timestep_rows.h"

#include <cmath>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace wan {

absl::StatusOr<TimestepRows> FindTimestepRows(const at::Tensor& timestep, int64_t batch,
                                              int64_t tokens) {
  const bool per_token = timestep.dim() == 2;
  const bool shape_is_right = per_token ? timestep.size(0) == batch && timestep.size(1) == tokens
                                        : timestep.dim() == 1 && timestep.size(0) == batch;
  if (!shape_is_right) {
    return absl::InvalidArgumentError(
        absl::StrCat("timestep has shape [", absl::StrJoin(timestep.sizes(), ", "), "], expected [",
                     batch, "] or [", batch, ", ", tokens, "], one for each latent or token"));
  }
  if (!timestep.is_cpu() ||
      !(timestep.is_floating_point() || timestep.scalar_type() == at::kLong)) {
    return absl::InvalidArgumentError(
        absl::StrCat("timestep is ", at::toString(timestep.scalar_type()), " on ",
                     timestep.device().str(), ", expected floating point or int64 on the CPU"));
  }

  const at::Tensor exact = timestep.to(at::kDouble).contiguous();
  const double* const values = exact.const_data_ptr<double>();
  TimestepRows rows;
  rows.index.reserve(batch * tokens);
  std::unordered_map<double, int32_t> known;
  for (int64_t i = 0; i < exact.numel(); ++i) {
    if (!std::isfinite(values[i])) {
      return absl::InvalidArgumentError("timestep has a value that is not finite");
    }
    const auto [entry, is_new] =
        known.try_emplace(values[i], static_cast<int32_t>(rows.timesteps.size()));
    if (is_new) rows.timesteps.push_back(values[i]);
    rows.index.insert(rows.index.end(), per_token ? 1 : tokens, entry->second);
  }
  if (rows.timesteps.size() == 1) rows.index.clear();
  return rows;
}

}  // namespace wan
