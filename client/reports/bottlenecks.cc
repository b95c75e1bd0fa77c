#include "client/reports/bottlenecks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/reports/comparison.h"
#include "client/reports/document.h"
#include "client/reports/step_changes.h"
#include "client/reports/verdict.h"

namespace wan::client::reports {
namespace {

using wan::v1::JobReport;

// Bottlenecks with a smaller share of the job are left out as noise.
constexpr double kLeastShare = 0.005;
constexpr double kLeastSeconds = 0.01;

bool OnGpu(const JobReport& report) { return absl::StartsWith(report.device(), "cuda"); }

double SumOfParts(const JobReport& report, std::string_view prefix) {
  double sum = 0;
  for (const StageReport* step : FindStages(report, StageKind::kInference)) {
    for (const wan::v1::StagePart& part : step->parts()) {
      if (absl::StartsWith(part.name(), absl::string_view(prefix.data(), prefix.size()))) {
        sum += part.seconds();
      }
    }
  }
  return sum;
}

double ShareSeconds(const JobReport& report, StageKind kind) {
  for (const TimeShare& share : TimeBudget(report)) {
    if (share.kind == kind) return share.seconds;
  }
  return 0;
}

std::vector<std::string> NotResident(const JobReport& report, bool transformer) {
  std::vector<std::string> names;
  for (const wan::v1::ComponentPlan& component : report.plan().components()) {
    if (absl::StartsWith(component.name(), "transformer") != transformer) continue;
    if (component.residency() != "resident") names.push_back(component.name());
  }
  return names;
}

const wan::v1::ComponentPlan* ComponentOf(const JobReport& report, std::string_view name) {
  for (const wan::v1::ComponentPlan& component : report.plan().components()) {
    if (component.name() == name) return &component;
  }
  return nullptr;
}

// Returns which share of the decoded area is in overlaps of tiles; absent if the plan lacks the
// autoencoder's stride.
std::optional<double> OverlapShare(const JobReport& report) {
  // Neighbouring tiles share eight latents (docs/operate/memory.md, Tiles).
  constexpr double kOverlap = 8;
  const wan::v1::PlanReport& plan = report.plan();
  const double area = static_cast<double>(report.request().width()) * report.request().height();
  if (plan.tokens() <= 0 || area <= 0) return std::nullopt;
  // A token covers two by two latents of one latent frame. The first latent frame stands for one
  // frame of the video, each other one for four.
  const int32_t latent_frames = (report.request().num_frames() - 1) / 4 + 1;
  const double stride =
      std::sqrt(latent_frames * area / (4.0 * static_cast<double>(plan.tokens())));
  const auto grown = [&](int32_t pixels, int32_t tiles) {
    return 1 + kOverlap * stride * (tiles - 1) / pixels;
  };
  return 1 - 1 / (grown(report.request().height(), plan.decode_tile_rows()) *
                  grown(report.request().width(), plan.decode_tile_columns()));
}

class Search {
 public:
  Search(const JobReport& report, const Ceilings* ceilings)
      : report_(report), ceilings_(ceilings), total_(TotalSeconds(report)) {}

  std::vector<Bottleneck> Find() {
    Guidance();
    SixteenBits();
    AboveFloor();
    Levels();
    FirstStep();
    Loading();
    Texts();
    Decoding();
    Launches();
    File();
    OtherProcesses();
    Gaps();
    return std::move(found_);
  }

 private:
  void Add(Bottleneck bottleneck) {
    const double weight = bottleneck.saves.value_or(bottleneck.seconds);
    if (weight < kLeastSeconds || weight < kLeastShare * total_) return;
    found_.push_back(std::move(bottleneck));
  }

  void Guidance() {
    if (!report_.plan().guided()) return;
    double second = SumOfParts(report_, "forward_unconditional");
    std::string basis = "measured: the sum of the second forwards";
    if (second <= 0) {
      // In a batch, both forwards are one pass over two texts.
      second = report_.plan().batched_guidance() ? SumOfParts(report_, "forward") / 2
                                                 : ShareSeconds(report_, StageKind::kInference) / 2;
      basis = "estimated: half of the forwards, which compute two texts with equal FLOPs";
    }
    Add({"Step_*_Inference, the forward without the prompt", second,
         "Guidance computes each step twice, with and without the prompt. One batch of both has "
         "the same FLOPs as two "
         "passes.",
         "Weights that were distilled for guidance 1 (--guidance 1, a few-step LoRA) need one "
         "forward a step; with other "
         "weights the video changes.",
         second, std::move(basis), "guidance_scale", "1", std::nullopt});
  }

  void SixteenBits() {
    if (!OnGpu(report_) || report_.dtype() != "bf16" || report_.plan().eight_bits()) return;
    const double forwards = SumOfParts(report_, "forward");
    double all = 0, of_eight_bits = 0;
    for (const wan::v1::OperatorClass& one : report_.plan().block_operators()) {
      all += one.flops();
      const bool stays = one.name() == "cross_attention" || one.name() == "elementwise";
      if (!stays) of_eight_bits += one.flops();
    }
    if (all <= 0) return;
    double saves = forwards / 2 * of_eight_bits / all;
    std::string basis =
        "at most: half of these operators' share, since inputs of 8 bits have twice the rate of "
        "bf16";
    wan::v1::PlanReport rounded = report_.plan();
    rounded.set_eight_bits(true);
    if (ceilings_ != nullptr) {
      const auto exact_floor = ForwardFloor(*ceilings_, report_.plan(), report_.dtype(), 1);
      const auto rounded_floor = ForwardFloor(*ceilings_, rounded, report_.dtype(), 1);
      if (exact_floor && rounded_floor) {
        saves = forwards * (1 - *rounded_floor / *exact_floor);
        basis = "estimated: the forwards at the ratio of this card's rates in bf16 and fp8";
      }
    }
    Add({"Step_*_Inference, products and self-attention", forwards,
         "The transformers' products and self-attention take inputs of 16 bits.",
         "quality: high, on a GPU of compute capability 8.9 or higher. It changes the picture "
         "(docs/use/quality.md).",
         saves, std::move(basis), "quality", "high", std::nullopt});
  }

  void AboveFloor() {
    if (ceilings_ == nullptr) return;
    double forwards = SumOfParts(report_, "forward"), flops = 0;
    for (const StageReport* step : FindStages(report_, StageKind::kInference)) {
      for (const wan::v1::StagePart& part : step->parts()) {
        if (absl::StartsWith(part.name(), "forward")) flops += part.flops();
      }
    }
    const std::optional<double> floor =
        ForwardFloor(*ceilings_, report_.plan(), report_.dtype(), flops);
    if (!floor || forwards <= *floor) return;
    Add({"Step_*_Inference, the forwards", forwards,
         absl::StrFormat(
             "The forwards' products and attention would take %.2f s at the rates that this card "
             "was measured "
             "to give; norms, modulation, rotary embeddings and slower kernels take the rest.",
             *floor),
         "There is nothing to set: it is what a faster engine could gain at this precision.",
         forwards - *floor, "measured time less FLOPs over the card's ceilings", "", "",
         std::nullopt, "", /*has_remedy=*/false});
  }

  void Levels() {
    const StepHistory history = StepHistoryOf(report_);
    double extra = 0, slow = 0;
    const StepChange* worst = nullptr;
    if (history.levels.levels.size() < 2) return;
    double best = history.levels.levels.front().seconds;
    for (const StepLevel& level : history.levels.levels) best = std::min(best, level.seconds);
    for (const StepChange& change : history.changes) {
      // Skip changes of the expert or of the number of forwards: these explain the difference of
      // time.
      if (!change.from_outside) return;
      if (change.seconds_after > change.seconds_before &&
          (worst == nullptr || change.extra_seconds > worst->extra_seconds)) {
        worst = &change;
      }
    }
    for (const StepLevel& level : history.levels.levels) {
      if (level.seconds <= best * (1 + kLevelDifference)) continue;
      const int steps = level.last - level.first + 1 - static_cast<int>(level.exceptions.size());
      extra += (level.seconds - best) * steps;
      slow += level.seconds * steps;
    }
    const std::vector<std::string>& sentences =
        worst != nullptr ? worst->explanation : history.changes.front().explanation;
    Add({"Step_*_Inference, steps at another level", slow, absl::StrJoin(sentences, " "),
         absl::StartsWith(report_.device(), "cpu")
             ? "Give the server processors that other processes do not use."
             : "Keep the GPU to one process, and see that power limit and cooling let its clocks "
               "stay.",
         extra, "measured: what these steps took more than those of the fastest level", "", "",
         std::nullopt});
  }

  void FirstStep() {
    const std::vector<const StageReport*> steps = FindStages(report_, StageKind::kInference);
    const StepHistory history = StepHistoryOf(report_);
    if (steps.size() < 3 || history.levels.levels.empty()) return;
    const double regular = history.levels.levels.front().seconds;
    const double first = StepSeconds(*steps.front());
    if (first < regular * (1 + kLevelDifference)) return;
    const Verdict verdict =
        Judge(Measured{{first}, CircumstancesOf({steps.front()})}, RegularSteps(steps, history));
    Add({steps.front()->stage(), first,
         OnGpu(report_)
             ? "The first step of a shape picks kernels and takes memory from the driver."
             : "The first step of a shape takes memory from the system and starts threads.",
         absl::StrCat(
             "A warm-up at this shape before the job: warm_up_shapes, or 'wanctl models warmup ",
             report_.model(), "'."),
         verdict.saved,
         verdict.saved ? "measured: the first step less a regular one"
                       : absl::StrCat("the first step and a regular one are ", verdict.text),
         "warm_up", "yes", std::nullopt});
  }

  // Returns the steps of the first level, except the level's exceptions and the job's first step.
  static Measured RegularSteps(const std::vector<const StageReport*>& steps,
                               const StepHistory& history) {
    const StepLevel& level = history.levels.levels.front();
    std::vector<const StageReport*> regular;
    Measured measured;
    for (int i = std::max(1, level.first); i <= level.last; ++i) {
      if (std::find(level.exceptions.begin(), level.exceptions.end(), i) != level.exceptions.end())
        continue;
      regular.push_back(steps[i]);
      measured.seconds.push_back(StepSeconds(*steps[i]));
    }
    std::sort(measured.seconds.begin(), measured.seconds.end());
    measured.circumstances = CircumstancesOf(regular);
    return measured;
  }

  void Loading() {
    const double seconds = ShareSeconds(report_, StageKind::kLoading);
    const std::vector<std::string> names = NotResident(report_, true);
    std::string cause = "Weights had to be brought to where the step computes.";
    if (!names.empty()) {
      cause = absl::StrCat(absl::StrJoin(names, " and "), " did not stay on the GPU.");
    }
    Add({"Step_*_Loading", seconds, cause,
         "residency_policies: transformer=resident, if the card has the memory; otherwise host, "
         "whose copies run beside "
         "the steps.",
         seconds, "measured: the time in which a step waited for weights",
         "residency_policies transformer", "resident", std::nullopt});
  }

  void Texts() {
    const double seconds = ShareSeconds(report_, StageKind::kText);
    const wan::v1::ComponentPlan* encoder = ComponentOf(report_, "text_encoder");
    if (!OnGpu(report_) || encoder == nullptr || encoder->residency() == "resident") return;
    Add({"T5_Encoding", seconds,
         absl::StrCat("The text encoder's weights are not on the GPU (", encoder->residency(),
                      ")."),
         absl::StrFormat(
             "residency_policies: text_encoder=resident, which takes %.1f GiB of the GPU.",
             static_cast<double>(encoder->weight_bytes()) / kGibibyte),
         seconds, "at most the whole stage: a resident encoder takes hundredths of a second",
         "residency_policies text_encoder", "resident", std::nullopt});
  }

  void Decoding() {
    const double seconds = ShareSeconds(report_, StageKind::kDecoding);
    const std::string precision = VaePrecision(report_);
    if (OnGpu(report_) && (precision == "fp32" || precision == "tf32")) {
      double saves = seconds / 2;
      std::string basis = absl::StrCat(
          "estimated without ceilings: half of the decoding, since every GPU with tensor cores has "
          "at least twice the rate of ",
          precision, " for products in fp16");
      if (ceilings_ != nullptr && ceilings_->products.contains(precision) &&
          ceilings_->products.contains("fp16")) {
        saves = seconds * (1 - ceilings_->products.at(precision) / ceilings_->products.at("fp16"));
        basis = absl::StrCat("estimated: the decoding at the ratio of this card's products in ",
                             precision, " and fp16");
      }
      Add({"VAE_Decoding", seconds, absl::StrCat("The frames are decoded in ", precision, "."),
           "vae_precision: fp16.", saves, std::move(basis), "vae_precision", "fp16", std::nullopt});
    }
    const int tiles = report_.plan().decode_tile_rows() * report_.plan().decode_tile_columns();
    if (tiles > 1) {
      const std::optional<double> share = OverlapShare(report_);
      Add({"VAE_Decoding", seconds,
           absl::StrFormat("Frames are decoded in %d tiles, whose overlaps are computed twice.",
                           tiles),
           "More free memory for the decoding: other components' weights off the card, or a higher "
           "device_memory_limit.",
           share ? std::optional(seconds * *share) : std::nullopt,
           share
               ? absl::StrFormat("estimated from the plan: overlaps are %.0f %% of the tiles' area",
                                 *share * 100)
               : "not estimated: the plan has no tokens",
           "decode_tiles", "1x1", std::nullopt});
    }
  }

  void Launches() {
    const std::vector<const StageReport*> steps = FindStages(report_, StageKind::kInference);
    const std::optional<double> active = WeightedMean(steps, SmActivity);
    const double seconds = ShareSeconds(report_, StageKind::kInference);
    if (!OnGpu(report_) || !active || *active > 80) return;
    Add({"Step_*_Inference", seconds,
         absl::StrFormat("The SMs were active in %.0f %% of the time: the GPU waited for launches "
                         "or for copies.",
                         *active),
         report_.plan().record_forwards()
             ? "There is nothing to set: forwards are recorded already."
             : "record_forwards: true, for videos that are so small that launches count.",
         seconds * (1 - *active / 100), "measured: the time in which no SM was active",
         "record_forwards", "yes", std::nullopt, "",
         /*has_remedy=*/!report_.plan().record_forwards()});
  }

  void File() {
    const double seconds = ShareSeconds(report_, StageKind::kVideo);
    Add({"Video_Encoding", seconds,
         "The file is finished after its last frame was decoded: the processors encode more slowly "
         "than the frames come.",
         "h264_preset: ultrafast, or more processors for the server.", seconds,
         "at most: the time after the last frame", "h264_preset", "", std::nullopt});
  }

  void OtherProcesses() {
    if (OnGpu(report_)) return;
    double lost = 0, seconds = 0;
    for (const StageReport* step : FindStages(report_, StageKind::kInference)) {
      if (!step->has_cpu_percent() || !step->has_process_cpu_percent()) continue;
      const double others = std::max(0.0, step->cpu_percent() - step->process_cpu_percent());
      seconds += step->seconds();
      if (step->cpu_percent() > 90) lost += step->seconds() * others / step->cpu_percent();
    }
    Add({"Step_*_Inference", seconds,
         "Other processes used the processors while all of them were busy.",
         "Run the server on a machine, or in a container, whose processors it has for itself.",
         lost, "estimated: the steps' time at the share that the others had of the processors", "",
         "", std::nullopt});
  }

  void Gaps() {
    const double seconds = ShareSeconds(report_, StageKind::kOther);
    Add({"Between the stages", seconds,
         "Time of the job that no stage covers: planning, noise, writing and hashing the files.",
         "A faster disk for the data folder, if the files are large.", seconds,
         "at most: all of this time", "", "", std::nullopt});
  }

  const JobReport& report_;
  const Ceilings* const ceilings_;
  const double total_;
  std::vector<Bottleneck> found_;
};

// Whether the differences consist of the bottleneck's remedy and nothing else.
bool IsRemedy(const Bottleneck& bottleneck, const std::vector<Difference>& causes) {
  return !bottleneck.setting.empty() && !causes.empty() &&
         std::all_of(causes.begin(), causes.end(), [&](const Difference& cause) {
           return absl::StartsWith(cause.setting, bottleneck.setting) &&
                  (bottleneck.value.empty() || bottleneck.value == cause.after);
         });
}

}  // namespace

Gain GainOf(const Bottleneck& bottleneck) {
  if (bottleneck.measured) return {bottleneck.measured, "measured by another run"};
  if (bottleneck.verdict.empty()) return {bottleneck.saves, bottleneck.basis};
  return {bottleneck.saves,
          absl::StrCat(bottleneck.basis, "; runs with it are ", bottleneck.verdict)};
}

std::vector<Bottleneck> FindBottlenecks(const Run& run, const Ceilings* ceilings,
                                        const std::vector<Run>& runs) {
  std::vector<Bottleneck> found = Search(run.report, ceilings).Find();
  for (const Run* other : MedianRuns(runs, run.name)) {
    if (other->variant == run.variant) continue;
    const std::vector<Difference> causes = CausesOf(DifferencesOf(run, *other));
    for (Bottleneck& bottleneck : found) {
      if (bottleneck.measured || !IsRemedy(bottleneck, causes)) continue;
      const Verdict verdict = Judge(MeasuredRuns(run, runs), MeasuredRuns(*other, runs));
      bottleneck.measured = verdict.saved;
      bottleneck.verdict = verdict.text;
    }
  }
  const auto weight = [](const Bottleneck& bottleneck) {
    return GainOf(bottleneck).seconds.value_or(-1);
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const Bottleneck& a, const Bottleneck& b) { return weight(a) > weight(b); });
  return found;
}

}  // namespace wan::client::reports
