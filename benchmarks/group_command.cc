// Measures the gain of several devices that compute one step together. The devices compute the
// forwards with and without the prompt in parallel, or divide the tokens of one forward.
//
//   wan_bench group --device cuda:0 --device cuda:1 --shape 832x480x81 --shape 1280x720x81
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "benchmarks/bench_flags.h"
#include "benchmarks/benched_transformer.h"
#include "benchmarks/commands.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/device/plugin_loader.h"
#include "engine/group/rank_threads.h"
#include "engine/group/thread_communicator.h"
#include "engine/models/group_transformer.h"
#include "engine/models/wan/transformer.h"

namespace wan {
namespace {

// The largest relative difference allowed in bf16 between flows that were summed in different
// orders. The difference in fp32 is far smaller.
constexpr double kMostErrorBf16 = 2e-2;
constexpr double kMostErrorFp32 = 1e-5;

struct GroupSettings {
  std::string model = "synthetic:ti2v-5b";
  std::vector<std::string> devices = {"cuda:0", "cuda:1"};
  std::string dtype = "bf16";
  std::vector<std::string> shapes = {BenchShape().Name()};
  int repeats = 3;
  double warmup_seconds = 1;
  int64_t text_rows = 128;
  int64_t exchange_mib = 256;
};

double RelativeError(const at::Tensor& actual, const at::Tensor& expected) {
  const at::Tensor gap = at::linalg_vector_norm(at::sub(actual, expected));
  return gap.item<double>() / at::linalg_vector_norm(expected).item<double>();
}

// The measured forwards: with and without the prompt, or only with the prompt.
using Forward = std::function<absl::StatusOr<at::Tensor>(const WorkGate& gate)>;

// Computes for `seconds`, then stops. The first blocks already allocate all memory and select all
// kernels, so a forward that takes a minute need not end.
absl::Status WarmUp(double seconds, at::Device device, const Forward& forward) {
  std::stop_source stop;
  absl::Notification ended;
  std::jthread timer([&] {
    ended.WaitForNotificationWithTimeout(absl::Seconds(seconds));
    stop.request_stop();
  });
  absl::Status status;
  while (status.ok()) status = forward(WorkGate(device, stop.get_token())).status();
  ended.Notify();
  Synchronize(device);
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

// Returns the median of the seconds of single calls; for two calls, the smaller number.
Timing MedianOf(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {seconds[(seconds.size() - 1) / 2], seconds.front(), seconds.back(),
          static_cast<int64_t>(seconds.size())};
}

class GroupBench {
 public:
  GroupBench(const GroupSettings& settings, Session& session, const VaeConfig& vae,
             BenchedTransformer benched)
      : settings_(settings), session_(session), vae_(vae), benched_(std::move(benched)) {}

  absl::StatusOr<bool> Run() {
    const std::vector<at::Tensor> contexts = benched_.RandomTexts(2, settings_.text_rows);
    std::vector<Case> cases;
    for (const std::string& shape : settings_.shapes) {
      absl::StatusOr<Case> alone = MeasureAlone(shape, contexts);
      if (!alone.ok()) return alone.status();
      cases.push_back(*std::move(alone));
    }
    if (absl::Status status = MakeGroup(); !status.ok()) return status;
    bool right = true;
    for (const Case& alone : cases) {
      for (const bool guided : {false, true}) {
        const absl::StatusOr<bool> same = MeasureTogether(alone, contexts, guided);
        if (!same.ok()) return same.status();
        right = right && *same;
      }
    }
    if (absl::Status status = MeasureExchange(); !status.ok()) return status;
    return right;
  }

 private:
  // A video, and the results of one device for it.
  struct Case {
    std::string shape;
    at::Tensor latents;
    at::Tensor timestep;
    Work work;         // the work of one forward
    at::Tensor flows;  // the flows with and without the prompt
    double forward_seconds = 0;
    double step_seconds = 0;
  };

  std::string NameOf(const std::string& shape, bool guided, size_t devices) const {
    return absl::StrCat(settings_.model, " ", shape, " ", settings_.dtype, ", ",
                        guided ? "guided step" : "forward", ", ", devices,
                        devices == 1 ? " device" : " devices");
  }

  // Computes the forwards one after the other, as one device does in a guided step.
  absl::StatusOr<Case> MeasureAlone(const std::string& shape,
                                    const std::vector<at::Tensor>& contexts) {
    const absl::StatusOr<BenchShape> parsed = ParseShape(shape);
    if (!parsed.ok()) return parsed.status();
    absl::Status shaped = SetShape(vae_, {.model = settings_.model, .shape = *parsed}, benched_);
    if (!shaped.ok()) return shaped;
    Case alone{.shape = shape,
               .latents = benched_.latents,
               .timestep = benched_.timestep,
               .work = benched_.ForwardWork(settings_.dtype)};
    std::vector<std::shared_ptr<const TextConditioning>> texts;
    for (const at::Tensor& context : contexts) {
      auto text = benched_.transformer->PrepareText({&context, 1});
      if (!text.ok()) return text.status();
      texts.push_back(*std::move(text));
    }
    const auto forward = [&](const TextConditioning& text, const WorkGate& gate) {
      return benched_.transformer->Forward(alone.latents, alone.timestep, text, gate);
    };
    if (absl::Status status =
            WarmUp(settings_.warmup_seconds, benched_.device,
                   [&](const WorkGate& gate) { return forward(*texts[0], gate); });
        !status.ok()) {
      return status;
    }
    std::vector<double> seconds;  // the seconds of each forward
    absl::StatusOr<BenchRow> step = session_.Repeat(
        NameOf(shape, /*guided=*/true, 1), {.repeats = settings_.repeats}, [&]() -> absl::Status {
          std::vector<at::Tensor> flows;
          for (const auto& text : texts) {
            const auto begin = std::chrono::steady_clock::now();
            absl::StatusOr<at::Tensor> flow = forward(*text, WorkGate(benched_.device, {}));
            if (!flow.ok()) return flow.status();
            Synchronize(benched_.device);
            seconds.push_back(SecondsSince(begin));
            flows.push_back(*std::move(flow));
          }
          alone.flows = at::cat(flows);
          return absl::OkStatus();
        });
    if (!step.ok()) return step.status();
    BenchRow single{.name = NameOf(shape, /*guided=*/false, 1), .timing = MedianOf(seconds)};
    single.card = step->card;
    alone.forward_seconds = single.timing->seconds;
    alone.step_seconds = step->timing->seconds;
    for (auto [row, forwards] : {std::pair(&single, 1), std::pair(&*step, 2)}) {
      row->work = Times(alone.work, forwards);
      if (absl::Status status = session_.Add(*row); !status.ok()) return status;
    }
    return alone;
  }

  static Work Times(Work work, int forwards) {
    work.product_flop *= forwards;
    work.attention_flop *= forwards;
    return work;
  }

  // Copies the weights to all other devices.
  absl::Status MakeGroup() {
    std::vector<GroupRank> ranks;
    ranks.push_back({benched_.device, std::move(benched_.transformer)});
    const auto checkpoint = Checkpoint::Open(settings_.model);
    if (!checkpoint.ok()) return checkpoint.status();
    for (size_t i = 1; i < settings_.devices.size(); ++i) {
      const at::Device device(settings_.devices[i]);
      if (device.is_cuda()) {
        if (absl::Status status = CheckGpuIsCompiledFor(device.index()); !status.ok()) {
          return status;
        }
      }
      const c10::DeviceGuard on_device(device);
      auto transformer = LoadWanTransformer(
          (*checkpoint)->transformer(), (*checkpoint)->transformer_config(),
          {.device = device, .dtype = settings_.dtype == "fp32" ? at::kFloat : at::kBFloat16});
      if (!transformer.ok()) return transformer.status();
      Synchronize(device);
      ranks.push_back({device, *std::move(transformer)});
    }
    for (const GroupRank& rank : ranks) devices_.push_back(rank.device);
    group_ = MakeGroupTransformer(std::move(ranks), &MakeThreadGroup);
    return absl::OkStatus();
  }

  // Returns whether the results of the group equal those of one device.
  absl::StatusOr<bool> MeasureTogether(const Case& alone, const std::vector<at::Tensor>& contexts,
                                       bool guided) {
    const int64_t videos = guided ? 2 : 1;
    const auto text = group_->PrepareText(std::span(contexts).first(static_cast<size_t>(videos)));
    if (!text.ok()) return text.status();
    const at::Tensor latents = alone.latents.expand({videos, -1, -1, -1, -1});
    const at::Tensor timestep = alone.timestep.expand({videos, -1});
    const Forward forward = [&](const WorkGate& gate) {
      return group_->Forward(latents, timestep, **text, gate);
    };
    if (absl::Status status = WarmUp(settings_.warmup_seconds, session_.device(), forward);
        !status.ok()) {
      return status;
    }
    at::Tensor flows;
    absl::StatusOr<BenchRow> row = session_.Repeat(
        NameOf(alone.shape, guided, devices_.size()), {.repeats = settings_.repeats},
        [&]() -> absl::Status {
          absl::StatusOr<at::Tensor> result = forward(WorkGate(session_.device(), {}));
          if (result.ok()) flows = *std::move(result);
          return result.status();
        });
    if (!row.ok()) return row.status();
    const at::Tensor expected = alone.flows.narrow(0, 0, videos);
    const bool equal = at::equal(flows, expected);
    const double error = RelativeError(flows, expected);
    const double alone_seconds = guided ? alone.step_seconds : alone.forward_seconds;
    row->work = Times(alone.work, static_cast<int>(videos));
    row->figures = {{"speedup", alone_seconds / row->timing->seconds},
                    {"equal", equal},
                    {"relative_error", error}};
    if (absl::Status status = session_.Add(*std::move(row)); !status.ok()) return status;
    // If each of two devices computes one text, the results have the same bits. If tokens are
    // divided, sums have a different order.
    const bool exact = guided && devices_.size() == 2;
    const double most = settings_.dtype == "fp32" ? kMostErrorFp32 : kMostErrorBf16;
    const bool right = exact ? equal : error <= most;
    if (!right) {
      session_.Note(absl::StrFormat("WRONG: %s: relative error %.2e",
                                    NameOf(alone.shape, guided, devices_.size()), error));
    }
    return right;
  }

  // Measures the highest rate at which the devices exchange data: every rank sends the same number
  // of bytes to each other rank.
  absl::Status MeasureExchange() {
    if (settings_.exchange_mib == 0 || devices_.size() < 2) return absl::OkStatus();
    const int64_t bytes = settings_.exchange_mib << 20;
    const auto ranks = static_cast<int>(devices_.size());
    const auto group = MakeThreadGroup(devices_);
    std::vector<std::vector<at::Tensor>> send(devices_.size());
    std::vector<std::vector<at::Tensor>> receive(devices_.size());
    for (size_t rank = 0; rank < devices_.size(); ++rank) {
      const auto options = at::TensorOptions(devices_[rank]).dtype(at::kByte);
      for (int peer = 0; peer < ranks; ++peer) {
        receive[rank].push_back(at::zeros({bytes}, options));
        send[rank].push_back(static_cast<int>(rank) == peer ? receive[rank].back()
                                                            : at::ones({bytes}, options));
      }
    }
    RankThreads threads(ranks);
    constexpr int kRounds = 20;
    const auto exchange = [&] {
      group->Begin({});
      return threads.Run(
          [&](int rank) {
            const c10::InferenceMode inference;
            const c10::DeviceGuard on_device(devices_[rank]);
            for (int round = 0; round < kRounds; ++round) {
              absl::Status status = group->End(rank).Exchange(send[rank], receive[rank]);
              if (!status.ok()) return status;
            }
            Synchronize(devices_[rank]);
            return absl::OkStatus();
          },
          [&](const absl::Status& failure) { group->Fail(failure); });
    };
    absl::StatusOr<BenchRow> row =
        session_.Repeat(absl::StrCat("exchange of ", settings_.exchange_mib, " MiB with each of ",
                                     ranks - 1, " peers, ", kRounds, " times"),
                        {.warmup = 1, .repeats = settings_.repeats}, exchange);
    if (!row.ok()) return row.status();
    const double sent = static_cast<double>(bytes) * (ranks - 1) * kRounds;
    row->figures = {{"received_bytes_per_second_each", sent / row->timing->seconds}};
    return session_.Add(*std::move(row));
  }

  const GroupSettings& settings_;
  Session& session_;
  const VaeConfig vae_;
  BenchedTransformer benched_;
  std::vector<at::Device> devices_;
  std::unique_ptr<VideoTransformer> group_;
};

absl::StatusOr<bool> Run(const GroupSettings& settings, Session& session) {
  const c10::InferenceMode inference;
  const absl::StatusOr<BenchShape> shape = ParseShape(settings.shapes.front());
  if (!shape.ok()) return shape.status();
  const absl::StatusOr<at::Device> device = session.Open(settings.devices.front());
  if (!device.ok()) return device.status();
  const auto checkpoint = Checkpoint::Open(settings.model);
  if (!checkpoint.ok()) return checkpoint.status();
  absl::StatusOr<BenchedTransformer> benched =
      LoadToBench(session, {.model = settings.model, .dtype = settings.dtype, .shape = *shape});
  if (!benched.ok()) return benched.status();
  return GroupBench(settings, session, (*checkpoint)->vae_config(), *std::move(benched)).Run();
}

}  // namespace

BenchCommand AddGroup(CLI::App& app) {
  const auto settings = std::make_shared<GroupSettings>();
  AddModelFlag(app, settings->model);
  app.add_option("--device", settings->devices, "cpu or cuda:N, once for each rank")
      ->capture_default_str();
  AddDtypeFlag(app, settings->dtype);
  app.add_option("--shape", settings->shapes, "WIDTHxHEIGHTxFRAMES, once for each video")
      ->capture_default_str();
  app.add_option("--text-rows", settings->text_rows, "tokens of the prompt")->capture_default_str();
  AddRepeatsFlag(app, settings->repeats);
  app.add_option("--warmup-seconds", settings->warmup_seconds,
                 "of forwards that are stopped, before each row")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--exchange", settings->exchange_mib,
                 "MiB that each device sends to each other in the row of the exchange; 0: no row")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
