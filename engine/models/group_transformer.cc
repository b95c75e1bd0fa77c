#include "engine/models/group_transformer.h"

#include <ATen/ops/cat.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/device/device_wait.h"
#include "engine/device/torch_errors.h"
#include "engine/group/rank_threads.h"

namespace wan {
namespace {

class GroupText final : public TextConditioning {
 public:
  GroupText(const VideoTransformer* owner, int64_t batch, size_t ranks)
      : parts(ranks), owner_(owner), batch_(batch) {}

  int64_t batch() const override { return batch_; }
  int64_t Bytes() const override {
    int64_t bytes = 0;
    for (const auto& part : parts) bytes += part->Bytes();
    return bytes;
  }
  const VideoTransformer* owner() const { return owner_; }

  // For each rank, the texts that its half computes.
  std::vector<std::shared_ptr<const TextConditioning>> parts;

 private:
  const VideoTransformer* const owner_;
  const int64_t batch_;
};

class GroupTransformer final : public VideoTransformer {
 public:
  GroupTransformer(std::vector<GroupRank> ranks, CommunicatorFactory make_communicators)
      : ranks_(std::move(ranks)),
        make_communicators_(std::move(make_communicators)),
        threads_(static_cast<int>(ranks_.size())) {}

  const TransformerConfig& config() const override { return ranks_[0].transformer->config(); }

  absl::StatusOr<std::shared_ptr<const TextConditioning>> PrepareText(
      std::span<const at::Tensor> contexts, const WorkGate& gate) override;
  absl::StatusOr<at::Tensor> Forward(const at::Tensor& latents, const at::Tensor& timestep,
                                     const TextConditioning& text, const WorkGate& gate,
                                     const ForwardPolicy& policy) override;

  int64_t WeightBytes() const override {
    int64_t bytes = 0;
    for (const GroupRank& rank : ranks_) bytes += rank.transformer->WeightBytes();
    return bytes;
  }
  void RecordForwards(bool record) override {
    for (const GroupRank& rank : ranks_) rank.transformer->RecordForwards(record);
  }
  int64_t RecordedBytes() const override {
    int64_t bytes = 0;
    for (const GroupRank& rank : ranks_) bytes += rank.transformer->RecordedBytes();
    return bytes;
  }

 private:
  // The division of a batch between the halves of the group. Each half's ranks share its videos.
  struct Division {
    int64_t halves = 1;
    int64_t ranks = 1;   // ranks per half
    int64_t videos = 1;  // videos per half

    int64_t HalfOf(int rank) const { return rank / ranks; }
    int64_t PlaceOf(int rank) const { return rank % ranks; }
  };
  Division Divide(int64_t batch) const {
    const auto ranks = static_cast<int64_t>(ranks_.size());
    const int64_t halves = batch == 2 && ranks % 2 == 0 ? 2 : 1;
    return {halves, ranks / halves, batch / halves};
  }

  // Calls `work` on every rank's thread and device, and turns LibTorch's exceptions into statuses.
  // The token that `work` gets is stopped by a stop request on `gate` and by another rank's
  // failure. After a failure RunOnAll returns only once no device is computing any more.
  absl::Status RunOnAll(
      std::string_view doing, const WorkGate& gate,
      const std::function<absl::Status(int rank, const std::stop_token& stop)>& work,
      const RankThreads::OnFailure& on_failure);

  // Counts a tensor that `rank` sent to another rank.
  void CountSent(size_t rank, const at::Tensor& tensor) const {
    ExchangeMeter* const meter = ranks_[rank].exchanges.get();
    if (meter != nullptr) meter->CountSent(static_cast<uint64_t>(tensor.nbytes()));
  }

  // Returns the communicators of `count` ranks, starting at `first`.
  CommunicatorGroup& CommunicatorsOf(int64_t first, int64_t count);

  std::vector<GroupRank> ranks_;
  const CommunicatorFactory make_communicators_;
  std::map<std::pair<int64_t, int64_t>, std::unique_ptr<CommunicatorGroup>> communicators_;
  RankThreads threads_;
};

absl::StatusOr<std::shared_ptr<const TextConditioning>> GroupTransformer::PrepareText(
    std::span<const at::Tensor> contexts, const WorkGate& gate) {
  const Division division = Divide(static_cast<int64_t>(contexts.size()));
  auto text =
      std::make_shared<GroupText>(this, static_cast<int64_t>(contexts.size()), ranks_.size());
  const auto prepare = [&](int rank, const std::stop_token& stop) {
    const auto own = contexts.subspan(static_cast<size_t>(division.HalfOf(rank) * division.videos),
                                      static_cast<size_t>(division.videos));
    absl::StatusOr<std::shared_ptr<const TextConditioning>> part =
        ranks_[rank].transformer->PrepareText(own, WorkGate(ranks_[rank].device, stop));
    if (part.ok()) text->parts[rank] = *std::move(part);
    return part.status();
  };
  if (absl::Status status = RunOnAll("preparing texts", gate, prepare, [](const absl::Status&) {});
      !status.ok()) {
    return status;
  }
  return text;
}

absl::StatusOr<at::Tensor> GroupTransformer::Forward(const at::Tensor& latents,
                                                     const at::Tensor& timestep,
                                                     const TextConditioning& text,
                                                     const WorkGate& gate,
                                                     const ForwardPolicy& policy) {
  const auto* const prepared = dynamic_cast<const GroupText*>(&text);
  if (prepared == nullptr || prepared->owner() != this) {
    return absl::InvalidArgumentError("the text was prepared by another transformer");
  }
  const int64_t batch = latents.dim() > 0 ? latents.size(0) : 0;
  if (batch != text.batch() || timestep.dim() == 0 || timestep.size(0) != batch) {
    return absl::InvalidArgumentError(absl::StrCat(batch, " latents, but ", text.batch(),
                                                   " texts and timesteps of shape [",
                                                   absl::StrJoin(timestep.sizes(), ", "), "]"));
  }
  const Division division = Divide(batch);
  const std::array<int64_t, 3>& patch = config().patch_size;
  int64_t tokens = latents.dim() == 5 ? 1 : 0;
  for (int axis = 0; tokens > 0 && axis < 3; ++axis) tokens *= latents.size(2 + axis) / patch[axis];
  // If the latents' shape is wrong, `tokens` may be 0; then one rank computes and reports the
  // error.
  const int64_t sharing = std::max<int64_t>(1, std::min(division.ranks, tokens));
  std::vector<CommunicatorGroup*> talks(static_cast<size_t>(division.halves));
  if (sharing > 1) {
    for (int64_t half = 0; half < division.halves; ++half) {
      talks[half] = &CommunicatorsOf(half * division.ranks, sharing);
      talks[half]->Begin(gate.stop_token());
    }
  }

  // Queue all copies here, before any forward. If a rank's own thread queued its copy, the copy
  // would wait for the forward that the first device has queued meanwhile.
  std::vector<at::Tensor> inputs;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const int64_t half = division.HalfOf(static_cast<int>(rank));
    inputs.push_back(latents.narrow(0, half * division.videos, division.videos)
                         .to(ranks_[rank].device, /*non_blocking=*/true));
    if (rank > 0) CountSent(0, inputs.back());
  }
  std::vector<at::Tensor> flows(static_cast<size_t>(division.halves));
  // Measures how long the first device waits for the other half's flow after its own work.
  std::optional<DeviceWait> wait;
  const auto forward = [&](int rank, const std::stop_token& stop) -> absl::Status {
    const int64_t half = division.HalfOf(rank);
    const int64_t place = division.PlaceOf(rank);
    if (place >= sharing) return absl::OkStatus();
    const GroupRank& own = ranks_[rank];
    own.transformer->ShareTokens(
        talks[half] == nullptr ? nullptr : &talks[half]->End(static_cast<int>(place)));
    absl::StatusOr<at::Tensor> flow = own.transformer->Forward(
        inputs[rank], timestep.narrow(0, half * division.videos, division.videos),
        *prepared->parts[rank], WorkGate(own.device, sharing > 1 ? std::stop_token() : stop),
        policy);
    if (flow.ok() && place == 0) flows[half] = *std::move(flow);
    if (rank == 0 && division.halves > 1) wait.emplace(own.device, own.exchanges);
    return flow.status();
  };
  const auto end_all = [&](const absl::Status& failure) {
    for (CommunicatorGroup* const talk : talks) {
      if (talk != nullptr) talk->Fail(failure);
    }
  };
  if (absl::Status status = RunOnAll("computing", gate, forward, end_all); !status.ok()) {
    return status;
  }
  for (at::Tensor& flow : flows) flow = flow.to(latents.device());
  for (int64_t half = 1; half < division.halves; ++half) {
    CountSent(static_cast<size_t>(half * division.ranks), flows[half]);
  }
  if (wait.has_value()) wait->End();
  return flows.size() == 1 ? flows[0] : at::cat(flows);
}

absl::Status GroupTransformer::RunOnAll(
    std::string_view doing, const WorkGate& gate,
    const std::function<absl::Status(int rank, const std::stop_token& stop)>& work,
    const RankThreads::OnFailure& on_failure) {
  // All ranks are stopped when one of them fails or when the caller requests a stop.
  std::stop_source stop;
  const std::stop_callback on_stop(gate.stop_token(), [&stop] { stop.request_stop(); });
  const auto run = [&](int rank) {
    const at::Device device = ranks_[rank].device;
    const c10::DeviceGuard on_device(device);
    // Call CatchTorchErrors on the rank's own thread, because its device checks use the thread's
    // current device.
    return CatchTorchErrors(absl::StrCat(std::string(doing), " on ", device.str(), " (rank ", rank,
                                         " of ", ranks_.size(), ")"),
                            [&] { return work(rank, stop.get_token()); });
  };
  absl::Status status = threads_.Run(run, [&](const absl::Status& failure) {
    on_failure(failure);
    stop.request_stop();
  });
  if (status.ok()) return status;
  // Wait for all devices: other ranks may still be copying from this forward's tensors, which the
  // caller may free.
  for (const GroupRank& rank : ranks_) AwaitDevice(rank.device);
  return status;
}

CommunicatorGroup& GroupTransformer::CommunicatorsOf(int64_t first, int64_t count) {
  std::unique_ptr<CommunicatorGroup>& group = communicators_[{first, count}];
  if (group == nullptr) {
    std::vector<at::Device> devices;
    for (int64_t i = first; i < first + count; ++i) devices.push_back(ranks_[i].device);
    group = make_communicators_(devices);
    for (int64_t i = 0; i < count; ++i) {
      group->CountIn(static_cast<int>(i), ranks_[first + i].exchanges);
    }
  }
  return *group;
}

}  // namespace

std::unique_ptr<VideoTransformer> MakeGroupTransformer(std::vector<GroupRank> ranks,
                                                       CommunicatorFactory make_communicators) {
  return std::make_unique<GroupTransformer>(std::move(ranks), std::move(make_communicators));
}

}  // namespace wan
