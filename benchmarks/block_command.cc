// Measures each operator of one transformer block: the least time that the measured ceilings allow,
// and the time that it takes within a forward.
//
//   wan_bench block --device cuda:0 --shape 1280x704x121
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/bench_flags.h"
#include "benchmarks/benched_transformer.h"
#include "benchmarks/block_work.h"
#include "benchmarks/card_watch.h"
#include "benchmarks/commands.h"
#include "benchmarks/op_trace.h"

namespace wan {
namespace {

struct BlockSettings {
  std::string model = "synthetic:ti2v-5b";
  std::string device = "cuda:0";
  std::string dtype = "bf16";
  std::string shape = BenchShape().Name();
  int repeats = 3;
};

bool IsCallOf(const OpTime& call, const std::string& op) {
  return absl::StartsWith(call.op, absl::StrCat(op, " "));
}

// Collects the seconds that each operator takes in each block of the traced forwards, in the order
// of the block. The time of other calls, such as views and the sums for the modulation, goes to
// `others`.
class BlockTimes {
 public:
  explicit BlockTimes(const std::vector<TracedOperator>& operators)
      : operators_(operators), seconds_(operators.size()) {}

  void Add(const std::vector<OpTime>& calls) {
    size_t next = 0;
    bool began = false;
    for (const OpTime& call : calls) {
      // A block begins after the norm of its input was applied. Embeddings before the first block
      // also contain products, but these are in fp32, and no norm follows them.
      if (!began) {
        began = IsCallOf(call, "wan::layer_norm_modulate");
        continue;
      }
      if (IsCallOf(call, operators_[next].traced_as)) {
        seconds_[next].push_back(call.seconds);
        next = (next + 1) % operators_.size();
      } else {
        others_ += call.seconds;
      }
    }
    ++forwards_;
  }

  Timing TimingOf(size_t index) const {
    std::vector<double> sorted = seconds_[index];
    std::sort(sorted.begin(), sorted.end());
    if (sorted.empty()) return {};
    return {sorted[sorted.size() / 2], sorted.front(), sorted.back(),
            static_cast<int64_t>(sorted.size())};
  }
  // Returns the seconds that a forward spends outside of the operators.
  double others() const { return others_ / forwards_; }

 private:
  const std::vector<TracedOperator>& operators_;
  std::vector<std::vector<double>> seconds_;
  double others_ = 0;
  int forwards_ = 0;
};

// Adds a row for each operator and one for the whole block.
absl::Status AddRows(const std::string& name, const std::vector<TracedOperator>& operators,
                     const BlockTimes& times, int64_t blocks, const CardState& card,
                     Session& session) {
  const auto in_forward = [&](double seconds) {
    return 1e3 * seconds * static_cast<double>(blocks);
  };
  BenchRow whole{.name = absl::StrCat(name, ": a block"), .card = card};
  double measured = 0;
  for (size_t i = 0; i < operators.size(); ++i) {
    BenchRow row{.name = absl::StrCat(name, ": ", operators[i].name)};
    row.timing = times.TimingOf(i);
    row.work = operators[i].work;
    row.card = card;
    measured += row.timing->seconds;
    const std::optional<double> floor = session.FloorSeconds(*row.work);
    AddPart(*row.work, floor, whole);
    if (floor.has_value()) {
      row.figures = {{"predicted_us", 1e6 * *floor},
                     {"measured_us", 1e6 * row.timing->seconds},
                     {"gflop", row.work->flop() / 1e9},
                     {"megabytes", row.work->bytes / 1e6},
                     {"above_ms_a_forward", in_forward(row.timing->seconds - *floor)}};
    }
    if (absl::Status status = session.Add(std::move(row)); !status.ok()) return status;
  }
  whole.timing = Timing{measured, measured, measured, 1};
  whole.figures = {{"measured_us", 1e6 * measured}, {"others_ms_a_forward", 1e3 * times.others()}};
  if (whole.ceiling_seconds.has_value()) {
    const double predicted = *whole.ceiling_seconds;
    whole.figures.push_back({"predicted_us", 1e6 * predicted});
    whole.figures.push_back({"above_ms_a_forward", in_forward(measured - predicted)});
  }
  return session.Add(std::move(whole));
}

absl::StatusOr<bool> Run(const BlockSettings& settings, Session& session) {
  const c10::InferenceMode inference;
  const absl::StatusOr<BenchShape> shape = ParseShape(settings.shape);
  if (!shape.ok()) return shape.status();
  const absl::StatusOr<at::Device> device = session.Open(settings.device);
  if (!device.ok()) return device.status();
  if (absl::Status status = session.FindCeilings(); !status.ok()) return status;
  const absl::StatusOr<BenchedTransformer> benched =
      LoadToBench(session, {.model = settings.model, .dtype = settings.dtype, .shape = *shape});
  if (!benched.ok()) return benched.status();
  const auto text = benched->PrepareTexts(1, 128);
  if (!text.ok()) return text.status();
  const TransformerConfig& config = benched->transformer->config();
  const std::vector<TracedOperator> operators =
      TracedOperators(config, benched->tokens, settings.dtype);
  BlockTimes times(operators);
  std::unique_ptr<CardWatch> watch;
  // Run one forward first: it selects kernels, and the clocks settle.
  for (int i = 0; i <= settings.repeats; ++i) {
    if (i == 1) watch = std::make_unique<CardWatch>(session.card());
    OpTrace trace(*device);
    const absl::Status status =
        benched->transformer->Forward(benched->latents, benched->timestep, **text).status();
    const std::vector<OpTime> calls = trace.FinishInOrder();
    if (!status.ok()) return status;
    if (i > 0) times.Add(calls);
  }
  const std::string name = absl::StrCat(settings.model, " ", settings.shape, " ", settings.dtype);
  absl::Status status =
      AddRows(name, operators, times, config.num_layers, watch->Finish(), session);
  if (!status.ok()) return status;
  return true;
}

}  // namespace

BenchCommand AddBlock(CLI::App& app) {
  const auto settings = std::make_shared<BlockSettings>();
  AddModelFlag(app, settings->model);
  AddDeviceFlag(app, settings->device);
  AddDtypeFlag(app, settings->dtype);
  AddShapeFlag(app, settings->shape);
  AddRepeatsFlag(app, settings->repeats, "traced forwards");
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
