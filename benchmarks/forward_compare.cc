#include "benchmarks/forward_compare.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace wan {
namespace {

using Text = std::shared_ptr<const TextConditioning>;

constexpr int64_t kTextRows = 128;

double Median(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

double Distance(const at::Tensor& a, const at::Tensor& b) {
  return (at::linalg_vector_norm(a - b) / at::linalg_vector_norm(a)).item<double>();
}

class Comparison {
 public:
  Comparison(const BenchedTransformer& benched, int rounds, Session& session)
      : benched_(benched), rounds_(rounds), session_(session) {}

  absl::Status Streaming() {
    benched_.weights->BringUp();
    const absl::StatusOr<Text> text = benched_.PrepareTexts(1, kTextRows);
    if (!text.ok()) return text.status();
    // Measure resident weights first and last, so that falling clocks are not counted as a cost of
    // streaming.
    for (int round = 0; round <= 2 * rounds_; ++round) {
      const bool streams = round % 2 == 1;
      if (streams) {
        benched_.weights->Stream();
      } else {
        benched_.weights->BringUp();
        benched_.weights->UseAll();
      }
      absl::Status status = TimeOne(streams ? second_ : first_, **text, {});
      if (!status.ok()) return status;
    }
    return SameBits("streamed weights give other results");
  }

  absl::Status Gate() {
    benched_.weights->BringUp();
    const absl::StatusOr<Text> text = benched_.PrepareTexts(1, kTextRows);
    if (!text.ok()) return text.status();
    const WorkGate gate(session_.device(), std::stop_token());
    std::vector<double> unused;
    if (absl::Status status = TimeOne(unused, **text, {}); !status.ok()) return status;
    // Measure without the gate first and last, so that falling clocks are not counted as a cost of
    // the gate.
    for (int round = 0; round <= 2 * rounds_; ++round) {
      const bool passes = round % 2 == 1;
      absl::Status status = TimeOne(passes ? second_ : first_, **text, passes ? gate : WorkGate());
      if (!status.ok()) return status;
    }
    return SameBits("a gate changes the results");
  }

  absl::Status Quality(const std::string& name, const ForwardPolicy& policy) {
    benched_.weights->BringUp();
    const absl::StatusOr<Text> text = benched_.PrepareTexts(1, kTextRows);
    if (!text.ok()) return text.status();
    at::Tensor exact;
    for (int round = 0; round <= rounds_; ++round) {
      at::Tensor rounded;
      const auto first = Time(**text, 1, {}, exact);
      if (!first.ok()) return first.status();
      const auto second = Time(**text, 1, {}, rounded, policy);
      if (!second.ok()) return second.status();
      if (round == 0) continue;  // the first call selects kernels
      first_.push_back(*first);
      second_.push_back(*second);
      apart_ = std::max(apart_, Distance(exact, rounded));
    }
    const int blocks = static_cast<int>(benched_.transformer->config().num_layers);
    for (int block = 0; block < blocks; ++block) {
      if (!policy.Rounds(block)) continue;
      at::Tensor rounded;
      std::vector<int> others;
      for (int other = 0; other < blocks; ++other) {
        if (other != block) others.push_back(other);
      }
      const auto seconds =
          Time(**text, 1, {}, rounded, {.eight_bits = true, .exact_blocks = std::move(others)});
      if (!seconds.ok()) return seconds.status();
      BenchRow row{.name = absl::StrCat(name, ", 8 bits in block ", block, " alone")};
      row.figures = {{"apart_by", Distance(exact, rounded)}};
      if (absl::Status status = session_.Add(std::move(row)); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Guidance() {
    benched_.weights->BringUp();
    const auto options = at::TensorOptions(session_.device()).dtype(at::kFloat);
    const int64_t text_dim = benched_.transformer->config().text_dim;
    const std::vector<at::Tensor> contexts = {at::randn({kTextRows, text_dim}, options),
                                              at::randn({kTextRows, text_dim}, options)};
    const std::span<const at::Tensor> all(contexts);
    const absl::StatusOr<Text> one = benched_.transformer->PrepareText(all.first(1));
    const absl::StatusOr<Text> other = benched_.transformer->PrepareText(all.last(1));
    const absl::StatusOr<Text> both = benched_.transformer->PrepareText(all);
    for (const absl::Status& status : {one.status(), other.status(), both.status()}) {
      if (!status.ok()) return status;
    }
    for (int round = 0; round <= rounds_; ++round) {
      at::Tensor first;
      at::Tensor second;
      at::Tensor batch;
      const auto apart = Time(**one, 1, {}, first);
      const auto then = Time(**other, 1, {}, second);
      const auto batched = Time(**both, 2, {}, batch);
      for (const absl::Status& status : {apart.status(), then.status(), batched.status()}) {
        if (!status.ok()) return status;
      }
      if (round == 0) continue;  // the first call only selects kernels
      first_.push_back(*apart + *then);
      second_.push_back(*batched);
      apart_ = std::max({apart_, Distance(first[0], batch[0]), Distance(second[0], batch[1])});
    }
    return absl::OkStatus();
  }

  BenchRow Row(const std::string& name) const {
    BenchRow row{.name = name};
    row.timing = Timing{Median(second_), *std::min_element(second_.begin(), second_.end()),
                        *std::max_element(second_.begin(), second_.end()),
                        static_cast<int64_t>(second_.size())};
    const double first = Median(first_);
    row.figures = {{"without_seconds", first},
                   {"percent_more", 100 * (row.timing->seconds / first - 1)},
                   {"apart_by", apart_}};
    return row;
  }

 private:
  absl::StatusOr<double> Time(const TextConditioning& text, int64_t batch, const WorkGate& gate,
                              at::Tensor& result, const ForwardPolicy& policy = {}) const {
    const at::Tensor latents = benched_.latents.expand({batch, -1, -1, -1, -1});
    const at::Tensor timestep = benched_.timestep.expand({batch, -1});
    Synchronize(session_.device());
    const auto begin = std::chrono::steady_clock::now();
    absl::StatusOr<at::Tensor> flow =
        benched_.transformer->Forward(latents, timestep, text, gate, policy);
    if (!flow.ok()) return flow.status();
    Synchronize(session_.device());
    result = *std::move(flow);
    return SecondsSince(begin);
  }

  // Also compares the result with the result of the first call.
  absl::Status TimeOne(std::vector<double>& seconds, const TextConditioning& text,
                       const WorkGate& gate) {
    at::Tensor result;
    const absl::StatusOr<double> one = Time(text, 1, gate, result);
    if (!one.ok()) return one.status();
    seconds.push_back(*one);
    if (!reference_.defined()) reference_ = result;
    if (!at::equal(reference_, result)) {
      differs_ = true;
      apart_ = std::max(apart_, Distance(reference_, result));
    }
    return absl::OkStatus();
  }

  absl::Status SameBits(const char* otherwise) const {
    return differs_ ? absl::InternalError(otherwise) : absl::OkStatus();
  }

  const BenchedTransformer& benched_;
  const int rounds_;
  Session& session_;
  std::vector<double> first_;
  std::vector<double> second_;
  at::Tensor reference_;
  bool differs_ = false;
  double apart_ = 0;
};

}  // namespace

absl::StatusOr<bool> CompareForwards(const ForwardComparison& compared,
                                     const BenchedTransformer& benched, int rounds,
                                     Session& session) {
  const auto& [what, name, rounded] = compared;
  Comparison comparison(benched, rounds, session);
  absl::Status status = what == "streaming" ? comparison.Streaming()
                        : what == "gate"    ? comparison.Gate()
                        : what == "quality" ? comparison.Quality(name, rounded)
                                            : comparison.Guidance();
  if (!status.ok()) return status;
  status = session.Add(comparison.Row(absl::StrCat(name, ", ", what)));
  if (!status.ok()) return status;
  return true;
}

}  // namespace wan
