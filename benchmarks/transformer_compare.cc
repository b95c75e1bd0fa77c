#include "benchmarks/transformer_compare.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

#include "benchmarks/harness.h"

namespace wan {
namespace {

using Text = std::shared_ptr<const TextConditioning>;

constexpr int64_t kTextRows = 128;

at::Tensor RandomText(const ComparedForward& forward) {
  return at::randn({kTextRows, forward.transformer.config().text_dim},
                   at::TensorOptions(forward.device).dtype(at::kFloat));
}

struct Timed {
  double seconds = 0;
  at::Tensor result;
};

absl::StatusOr<Timed> Time(const ComparedForward& forward, const at::Tensor& latents,
                           const at::Tensor& timestep, const Text& text,
                           const WorkGate& gate = {}) {
  Synchronize(forward.device);
  const auto begin = std::chrono::steady_clock::now();
  absl::StatusOr<at::Tensor> result = forward.transformer.Forward(latents, timestep, *text, gate);
  if (!result.ok()) return result.status();
  Synchronize(forward.device);
  return Timed{SecondsSince(begin), *std::move(result)};
}

double Median(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

double Distance(const at::Tensor& a, const at::Tensor& b) {
  return (at::linalg_vector_norm(a - b) / at::linalg_vector_norm(a)).item<double>();
}

}  // namespace

absl::Status CompareStreaming(const ComparedForward& forward) {
  const std::vector<at::Tensor> contexts = {RandomText(forward)};
  forward.weights.BringUp();
  const absl::StatusOr<Text> text = forward.transformer.PrepareText(contexts);
  if (!text.ok()) return text.status();
  std::vector<double> there;
  std::vector<double> streamed;
  at::Tensor first;
  bool same = true;
  // Begins and ends with weights that are there: what clocks lose meanwhile is not streaming's.
  for (int round = 0; round <= 2 * forward.rounds; ++round) {
    const bool streams = round % 2 == 1;
    if (streams) {
      forward.weights.Stream();
    } else {
      forward.weights.BringUp();
      forward.weights.UseAll();
    }
    const absl::StatusOr<Timed> timed = Time(forward, forward.latents, forward.timestep, *text);
    if (!timed.ok()) return timed.status();
    (streams ? streamed : there).push_back(timed->seconds);
    if (round == 0) first = timed->result;
    same = same && at::equal(first, timed->result);
    std::printf("%s: %.4f s\n", streams ? "streamed" : "there", timed->seconds);
  }
  std::printf("streaming: %.4f s against %.4f s, %+.2f %%, %s\n", Median(streamed), Median(there),
              100 * (Median(streamed) / Median(there) - 1), same ? "same bits" : "OTHER BITS");
  return same ? absl::OkStatus() : absl::InternalError("streamed weights give other results");
}

absl::Status CompareGuidance(const ComparedForward& forward) {
  forward.weights.BringUp();
  const std::vector<at::Tensor> contexts = {RandomText(forward), RandomText(forward)};
  const std::span<const at::Tensor> all(contexts);
  const absl::StatusOr<Text> first = forward.transformer.PrepareText(all.first(1));
  const absl::StatusOr<Text> second = forward.transformer.PrepareText(all.last(1));
  const absl::StatusOr<Text> both = forward.transformer.PrepareText(all);
  for (const absl::Status& status : {first.status(), second.status(), both.status()}) {
    if (!status.ok()) return status;
  }
  const at::Tensor twice = forward.latents.expand({2, -1, -1, -1, -1});
  const at::Tensor timesteps = forward.timestep.expand({2, -1});
  std::vector<double> apart;
  std::vector<double> batched;
  double distance = 0;
  for (int round = 0; round <= forward.rounds; ++round) {
    const auto one = Time(forward, forward.latents, forward.timestep, *first);
    const auto other = Time(forward, forward.latents, forward.timestep, *second);
    const auto batch = Time(forward, twice, timesteps, *both);
    for (const absl::Status& status : {one.status(), other.status(), batch.status()}) {
      if (!status.ok()) return status;
    }
    if (round == 0) continue;  // the first finds kernels
    apart.push_back(one->seconds + other->seconds);
    batched.push_back(batch->seconds);
    distance = std::max({distance, Distance(one->result[0], batch->result[0]),
                         Distance(other->result[0], batch->result[1])});
  }
  std::printf(
      "guidance: %.4f s one after the other, %.4f s in one batch, %+.2f %%; apart by %.2e\n",
      Median(apart), Median(batched), 100 * (Median(batched) / Median(apart) - 1), distance);
  return absl::OkStatus();
}

absl::Status CompareGate(const ComparedForward& forward) {
  forward.weights.BringUp();
  const std::vector<at::Tensor> contexts = {RandomText(forward)};
  const absl::StatusOr<Text> text = forward.transformer.PrepareText(contexts);
  if (!text.ok()) return text.status();
  const WorkGate gate(forward.device, std::stop_token());
  std::vector<double> open;
  std::vector<double> gated;
  at::Tensor first;
  bool same = true;
  // Begins and ends without: what clocks lose meanwhile is not the gate's. The first finds kernels.
  for (int round = -1; round <= 2 * forward.rounds; ++round) {
    const bool passes = round >= 0 && round % 2 == 1;
    const absl::StatusOr<Timed> timed =
        Time(forward, forward.latents, forward.timestep, *text, passes ? gate : WorkGate());
    if (!timed.ok()) return timed.status();
    if (round >= 0) (passes ? gated : open).push_back(timed->seconds);
    if (!first.defined()) first = timed->result;
    same = same && at::equal(first, timed->result);
  }
  std::printf("gate: %.5f s without, %.5f s with one, %+.3f %%, %s\n", Median(open), Median(gated),
              100 * (Median(gated) / Median(open) - 1), same ? "same bits" : "OTHER BITS");
  return same ? absl::OkStatus() : absl::InternalError("a gate changes the results");
}

}  // namespace wan
