// A keeper of savepoints that keeps them in memory.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/savepoint.h"

namespace wan::fakes {

class FakeSavepointKeeper final : public SavepointKeeper {
 public:
  absl::StatusOr<std::optional<Savepoint>> Load() override { return kept; }
  bool IsDue(bool last_step) override { return every_step || (last_step && before_decoding); }
  bool WantsWhenStopped() override { return when_stopped; }
  void Keep(Savepoint savepoint) override {
    steps.push_back(savepoint.steps_done);
    kept = std::move(savepoint);
  }
  absl::Status Refuse(const std::string& reason) override {
    refusals.push_back(reason);
    return after_refusal;
  }

  bool every_step = false;
  bool before_decoding = false;
  bool when_stopped = false;
  absl::Status after_refusal;  // what Refuse returns

  std::optional<Savepoint> kept;
  std::vector<int> steps;  // the number of steps of each savepoint that was kept
  std::vector<std::string> refusals;
};

}  // namespace wan::fakes
