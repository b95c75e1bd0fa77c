#include "engine/planning/residency_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/api/stage.h"
#include "engine/costs/library_workspace.h"
#include "engine/costs/wan/shared_tokens_cost.h"
#include "engine/costs/wan/transformer_cost.h"
#include "engine/costs/wan/umt5_cost.h"
#include "engine/costs/wan/vae_cost.h"
#include "engine/media/writer_memory.h"

namespace wan {
namespace {

using Policies = std::vector<ResidencyPolicy>;

constexpr int64_t kFp32 = 4;
constexpr int64_t kColors = 3;
// The lowest cost that the plan assumes for a streamed byte. A byte that is copied while nothing
// computes costs 1.
constexpr double kLeastStreamedShare = 0.05;
// The cost of a byte that is read from the page cache (20 GB/s), if a byte copied over the link (50
// GB/s) costs 1.
constexpr double kReadShare = 2.5;
// The cost of a byte of a component that does no work in the job and is moved off the device, in
// the unit of kReadShare. The job itself copies nothing; a later job may fetch the component again.
constexpr double kIdleShare = 1e-3;
// Limits of the memory that reading weights takes on the device. On a GPU, tensors wait in their
// file's dtype until more than kStagedBytes are pending; the last pending tensor may exceed this
// limit. The largest tensor of the published transformers has 5120 x 13824 elements, which are 270
// MiB in fp32. On a CPU only a piece of one tensor is converted at a time.
constexpr uint64_t kStagedBytes = uint64_t{512} << 20;
constexpr uint64_t kMostConvertedBytes = uint64_t{1} << 30;
constexpr uint64_t kMostConvertedBytesOnCpu = uint64_t{32} << 20;
// The number of operations that a card computes while its link copies a byte. Two cards have the
// lowest ratios: an H100 with 500 TFLOP/s and 50 GB/s, and an A100 with 250 TFLOP/s and 25 GB/s.
constexpr double kFlopsPerLinkByte = 1e4;

// Adds 1 %, because allocators round sizes up and libraries need a little memory.
uint64_t WithMargin(uint64_t bytes) { return bytes + bytes / 100; }

// Returns the device memory that a job holds in all its stages: latents, noise, flow, the solver's
// history, texts, and the image's channels.
uint64_t JobBytes(const MemoryJob& job) {
  const LatentSize& size = job.latents;
  const int64_t latents = job.vae.z_dim * size.frames * size.height * size.width * kFp32;
  const int64_t condition =
      job.image == ImageRole::kCondition
          ? 3 * job.transformer.in_channels * size.frames * size.height * size.width * kFp32
          : 0;
  const int64_t texts = 2 * job.transformer.text_len * job.text_encoder.dim * job.element_bytes;
  return static_cast<uint64_t>(8 * latents + condition + texts);
}

// The bytes of activations in each stage. Policies do not change them, except that kCpu moves them
// to the host.
struct Activations {
  uint64_t text_encoding = 0;
  uint64_t vae_encoding = 0;
  uint64_t step_single = 0;
  uint64_t step_batched = 0;
  uint64_t preview = 0;  // bytes of decoding a preview, plus the bytes of the texts, which the step
                         // keeps meanwhile
  uint64_t decoding = 0;
};

// `recorded` is the bytes of recorded forwards, which stay allocated in all stages.
Activations ActivationsOf(const MemoryJob& job, const TileGrid& tiles, uint64_t recorded = 0) {
  const uint64_t held = JobBytes(job) + kLibraryWorkspaceBytes + recorded;
  const int64_t texts = job.guided ? 2 : 1;
  const LatentSize tile = TileOf(job.latents, tiles);
  const auto rounding = [&](int64_t batch) {
    return job.eight_bits ? RoundingBytes(job.transformer, job.tokens, batch) : 0;
  };
  uint64_t conditioning = TextConditioningBytes(job.transformer, texts, job.element_bytes);
  if (job.keeps_blocks) {
    conditioning += KeptBlocksBytes(job.transformer, job.tokens, texts, job.ranks);
  }
  const auto step = [&](int64_t batch) {
    return WithMargin(held + rounding(batch) + conditioning +
                      std::max(TextPreparationBytes(job.transformer, batch, job.element_bytes),
                               GroupForwardBytes(job.transformer, job.tokens, batch, job.ranks,
                                                 job.element_bytes)));
  };
  Activations activations;
  const uint64_t restored = job.eight_bit_weights.text_encoder
                                ? RestoredMatrixBytes(job.text_encoder, job.element_bytes)
                                : 0;
  activations.text_encoding =
      WithMargin(held + restored +
                 TextEncodingBytes(job.text_encoder, std::max<int64_t>(job.text_tokens, 1),
                                   job.element_bytes));
  if (job.image != ImageRole::kNone) {
    LatentSize encoded = job.latents;
    if (job.image == ImageRole::kFirstFrame) encoded.frames = 1;
    activations.vae_encoding =
        WithMargin(held + EncodingBytes(job.vae, encoded, job.vae_arithmetic));
  }
  activations.step_single = step(1);
  activations.step_batched = step(2);
  if (job.previews) {
    activations.preview =
        WithMargin(held + conditioning +
                   DecodingBytes(job.vae, {1, tile.height, tile.width}, job.vae_arithmetic));
  }
  if (job.decodes)
    activations.decoding = WithMargin(held + DecodingBytes(job.vae, tile, job.vae_arithmetic));
  return activations;
}

// Returns the device memory that a component's weights take while it works (`in_use`) or while it
// does not.
uint64_t HeldBytes(const PlannedComponent& component, ResidencyPolicy policy, bool in_use) {
  if (component.elsewhere) return 0;
  switch (policy) {
    case ResidencyPolicy::kAuto:
    case ResidencyPolicy::kResident:
      return component.bytes;
    case ResidencyPolicy::kHost:
    case ResidencyPolicy::kDisk:
      return in_use ? component.bytes : 0;
    case ResidencyPolicy::kStream:
      return in_use ? component.base_bytes + 2 * component.group_bytes : 0;
    case ResidencyPolicy::kCpu:
      return 0;
  }
  return component.bytes;
}

// Returns whether weights with this policy are in host memory while the component does not work.
bool WaitsOnHost(ResidencyPolicy policy) {
  return policy == ResidencyPolicy::kHost || policy == ResidencyPolicy::kStream;
}

// Returns the host memory of frames on their way to files: the encoder's shortest queue, two
// decoded chunks in 8 bits, the frames that encoders keep, and, if there are tiles, the whole video
// in fp32.
uint64_t FrameBytes(const MemoryJob& job, const TileGrid& tiles) {
  constexpr int64_t kFrames = kLeastQueuedFrames + 2 * 4;
  int64_t bytes = job.frame_pixels * kFrames * kColors;
  if (!tiles.IsWhole()) bytes += job.frame_pixels * job.frames * kColors * kFp32;
  return static_cast<uint64_t>(bytes) +
         static_cast<uint64_t>(job.writers) * WriterBytes(job.frame_pixels, job.frame_height);
}

// Returns how many bytes of host memory the savepoints of a job take. There may be three: one that
// is being made, one that waits and one that is being written. A savepoint holds the latents and
// the history of a second-order solver.
uint64_t SavepointBytes(const MemoryJob& job) {
  constexpr int64_t kSavepoints = 3;
  constexpr int64_t kTensors = 4;
  return static_cast<uint64_t>(kSavepoints * kTensors * job.transformer.out_channels *
                               job.latents.frames * job.latents.height * job.latents.width * kFp32);
}

// Adds up the memory of each stage for one set of policies.
class Sums {
 public:
  Sums(const std::vector<PlannedComponent>& components, const MemoryJob& job,
       const Policies& policies, const PlanLimits& limits)
      : components_(components), job_(job), policies_(policies), limits_(limits) {}

  ResidencyChoice Choose(const Activations& activations, const TileGrid& tiles, bool batched,
                         bool prefetch) const {
    const size_t vae = components_.size() - 1;
    ResidencyChoice choice;
    choice.policies = policies_;
    choice.batched_guidance = batched;
    choice.prefetch_experts = prefetch;
    choice.decode_tiles = tiles;
    choice.preprocess = Stage({}, /*activations=*/0, /*computing=*/0);
    choice.preprocess.host += job_.image_bytes;
    if (!Denoises()) choice.preprocess.host += job_.latents_reading_bytes;
    if (Denoises()) choice.text_encoding = Stage({0}, activations.text_encoding, 0);
    if (job_.image != ImageRole::kNone) {
      choice.vae_encoding = Stage({vae}, activations.vae_encoding, vae);
    }
    uint64_t reading = job_.latents_reading_bytes;  // only the first expert that works reads the
                                                    // latents
    for (size_t expert = 1; expert < vae; ++expert) {
      if (job_.expert_steps[expert - 1] == 0) {
        choice.steps.emplace_back();  // the expert does not work
        continue;
      }
      std::vector<size_t> in_use{expert};
      const bool next_works = expert + 1 < vae && job_.expert_steps[expert] > 0;
      if (prefetch && next_works) in_use.push_back(expert + 1);
      const uint64_t forward = batched ? activations.step_batched : activations.step_single;
      StageMemory step = Stage(in_use, forward + MergingBytes(expert), expert);
      if (job_.previews) {
        in_use.push_back(vae);
        const StageMemory preview = Stage(in_use, activations.preview, vae);
        if (preview.total() > step.total()) step = preview;
      }
      step.host += SavepointBytes(job_) + std::exchange(reading, 0);
      choice.steps.push_back(step);
    }
    if (job_.decodes) {
      choice.decoding = Stage({vae}, activations.decoding, vae);
      choice.decoding.host += FrameBytes(job_, tiles);
    }
    choice.peak = std::max(
        {choice.text_encoding.total(), choice.vae_encoding.total(), choice.decoding.total()});
    for (const StageMemory& step : choice.steps) choice.peak = std::max(choice.peak, step.total());
    // Other models leave the device before the job begins, which takes host memory.
    const uint64_t others = ParkedForRoom(choice.peak);
    const auto add = [&](StageMemory& stage) {
      stage.host += others;
      stage.host_pinned += others;
      choice.host_peak = std::max(choice.host_peak, stage.host);
    };
    add(choice.preprocess);
    if (Denoises()) add(choice.text_encoding);
    if (job_.image != ImageRole::kNone) add(choice.vae_encoding);
    for (size_t expert = 0; expert < choice.steps.size(); ++expert) {
      if (job_.expert_steps[expert] > 0) add(choice.steps[expert]);
    }
    if (job_.decodes) add(choice.decoding);
    return choice;
  }

  // Returns the cost of the bytes that the job moves while nothing computes.
  double Cost() const {
    double cost = 0;
    for (size_t i = 0; i < components_.size(); ++i) {
      const auto bytes = static_cast<double>(components_[i].bytes);
      const double fetches = Fetches(i) > 0 ? Fetches(i) : kIdleShare;
      if (policies_[i] == ResidencyPolicy::kHost) cost += bytes * fetches;
      if (policies_[i] == ResidencyPolicy::kDisk) cost += bytes * fetches * kReadShare;
      if (policies_[i] == ResidencyPolicy::kStream) cost += bytes * StreamedPasses(i);
    }
    return cost;
  }

 private:
  bool Denoises() const {
    return std::any_of(job_.expert_steps.begin(), job_.expert_steps.end(),
                       [](int steps) { return steps > 0; });
  }

  bool IsExpert(size_t component) const {
    return component > 0 && component + 1 < components_.size();
  }

  // Returns the number of stages in which the component works; before each of them, it is brought
  // to the device. 0: the component does no work in this job. Previews count as one stage, whatever
  // their number.
  int Fetches(size_t component) const {
    if (component == 0) return Denoises() ? 1 : 0;
    if (IsExpert(component)) return job_.expert_steps[component - 1] > 0 ? 1 : 0;
    return (job_.image != ImageRole::kNone ? 1 : 0) + (job_.previews ? 1 : 0) +
           (job_.decodes ? 1 : 0);
  }

  // Returns how many times a streamed component's bytes are, in effect, copied while nothing
  // computes.
  double StreamedPasses(size_t component) const {
    const int fetches = Fetches(component);
    if (fetches == 0) return kIdleShare;
    // Text encoder and VAE are copied once per text or stage, which is too little work to hide the
    // copies.
    if (!IsExpert(component)) return component == 0 && job_.guided ? 2 : fetches;
    const int steps = job_.expert_steps[component - 1];
    const double hidden = TransformerForwardFlops(job_.transformer, job_.tokens) /
                          (kFlopsPerLinkByte * static_cast<double>(components_[component].bytes));
    return std::max(1.0, steps * (job_.guided ? 2 : 1) * std::max(kLeastStreamedShare, 1 - hidden));
  }

  uint64_t MostConvertedBytes(size_t component) const {
    if (limits_.host.is_device) return kMostConvertedBytesOnCpu;
    // The published text encoder is in bf16. If fp32 is wanted, its token table (2 GiB) is
    // converted as well.
    const bool converts_table = component == 0 && job_.element_bytes == kFp32;
    if (!converts_table) return kMostConvertedBytes;
    constexpr int64_t kBf16 = 2;
    return kStagedBytes +
           static_cast<uint64_t>(job_.text_encoder.vocab_size * job_.text_encoder.dim * kBf16);
  }

  uint64_t MergingBytes(size_t component) const {
    const std::vector<uint64_t>& bytes = job_.expert_merging_bytes;
    return bytes.empty() ? 0 : WithMargin(bytes[component - 1]);
  }

  StageMemory Stage(const std::vector<size_t>& in_use, uint64_t activations,
                    size_t computing) const {
    StageMemory stage;
    for (size_t i = 0; i < components_.size(); ++i) {
      const bool used = std::find(in_use.begin(), in_use.end(), i) != in_use.end();
      stage.weights += HeldBytes(components_[i], policies_[i], used);
    }
    // A component that computes on the CPU has its activations in host memory.
    const bool on_device = policies_[computing] != ResidencyPolicy::kCpu;
    stage.activations =
        on_device ? activations : WithMargin(JobBytes(job_) + kLibraryWorkspaceBytes);
    const HostLimits& host = limits_.host;
    for (const size_t i : in_use) {
      if (policies_[i] != ResidencyPolicy::kDisk) continue;
      // Weights are converted before the stage computes, so the two do not add up.
      const uint64_t converted = std::min(MostConvertedBytes(i), 2 * components_[i].bytes);
      stage.activations = std::max(stage.activations, WithMargin(JobBytes(job_) + converted));
      if (!host.is_device) stage.host = kReadingBuffersBytes;
    }
    for (size_t i = 0; i < components_.size(); ++i) {
      const uint64_t copy = i < host.copies.size() ? host.copies[i] : 0;
      if (WaitsOnHost(policies_[i])) {
        stage.host_pinned += components_[i].bytes - std::min(copy, components_[i].bytes);
      }
    }
    stage.host += stage.host_pinned + job_.latents_bytes;
    if (!on_device) stage.host += activations;
    if (host.is_device) {
      stage.host += stage.total() - std::min(host.weights_on_device, stage.total());
    }
    return stage;
  }

  // Returns the host memory that is needed to park other models' weights, so that a job of this
  // size has room.
  uint64_t ParkedForRoom(uint64_t peak) const {
    // On a CPU, parked weights stay in the same host memory.
    if (limits_.device_memory_bytes == 0 || limits_.host.is_device) return 0;
    const uint64_t room = limits_.device_memory_bytes - std::min(peak, limits_.device_memory_bytes);
    uint64_t held = 0;
    for (const MovableWeights& other : limits_.host.others) held += other.device_bytes;
    uint64_t pinned = 0;
    for (const MovableWeights& other : limits_.host.others) {
      if (held <= room) break;
      held -= other.device_bytes;
      pinned += other.pinned_bytes;
    }
    return pinned;
  }

  const std::vector<PlannedComponent>& components_;
  const MemoryJob& job_;
  const Policies& policies_;
  const PlanLimits& limits_;
};

bool FitsDevice(const ResidencyChoice& choice, const PlanLimits& limits) {
  return limits.device_memory_bytes == 0 || choice.peak <= limits.device_memory_bytes;
}

bool Fits(const ResidencyChoice& choice, const PlanLimits& limits) {
  const uint64_t host = limits.host.available_bytes;
  return FitsDevice(choice, limits) && (host == 0 || choice.host_peak <= host);
}

// Returns the tile grids with which a job may be decoded, whole frames first.
std::vector<TileGrid> GridsOf(const MemoryJob& job, bool limited) {
  std::vector<TileGrid> grids{TileGrid{}};
  // A job that decodes no frames needs no tiles.
  if (limited && (job.decodes || job.previews)) {
    const std::vector<TileGrid> smaller = TileGrids(job.latents);
    grids.insert(grids.end(), smaller.begin(), smaller.end());
  }
  return grids;
}

// Calls `visit` for every way of replacing kAuto, in the components from `component` on. kDisk
// needs as much device memory as kHost and is slower, so it is tried only if host memory is
// limited.
template <typename Visit>
void ForEachPolicies(const std::vector<PlannedComponent>& components, const PlanLimits& limits,
                     Policies& policies, size_t component, const Visit& visit) {
  if (component == components.size()) {
    visit();
    return;
  }
  if (components[component].policy != ResidencyPolicy::kAuto) {
    policies[component] = components[component].policy;
    ForEachPolicies(components, limits, policies, component + 1, visit);
    return;
  }
  for (const ResidencyPolicy policy : {ResidencyPolicy::kResident, ResidencyPolicy::kHost,
                                       ResidencyPolicy::kStream, ResidencyPolicy::kDisk}) {
    if (policy == ResidencyPolicy::kDisk && limits.host.available_bytes == 0) continue;
    policies[component] = policy;
    ForEachPolicies(components, limits, policies, component + 1, visit);
  }
}

// Returns the device memory that a job's recorded forwards take; 0 if none are recorded.
uint64_t RecordedBytes(const MemoryJob& job, const ResidencyChoice& choice) {
  if (!job.records_forwards) return 0;
  const auto forward = [&](int64_t batch) {
    const uint64_t exact =
        RecordedForwardBytes(job.transformer, job.tokens, batch, job.element_bytes);
    if (exact == 0 || !job.eight_bits) return exact;
    return exact + RoundingBytes(job.transformer, job.tokens, batch);
  };
  uint64_t bytes = 0;
  for (size_t expert = 1; expert + 1 < choice.policies.size(); ++expert) {
    if (job.expert_steps[expert - 1] == 0) continue;
    const ResidencyPolicy policy = choice.policies[expert];
    // Streamed weights move between forwards, so their forwards cannot be recorded.
    if (policy == ResidencyPolicy::kStream || policy == ResidencyPolicy::kCpu) continue;
    // Steps without guidance run a single forward even if other steps run a batch of two.
    const uint64_t batched = choice.batched_guidance ? forward(2) : 0;
    if (choice.batched_guidance && batched == 0) continue;
    bytes += batched + forward(1);
  }
  // Recording uses a stream of its own, for which the libraries allocate another workspace.
  return bytes == 0 ? 0 : bytes + kLibraryWorkspaceBytes;
}

// Lengthens the encoder's queue, up to the whole video, if the host has room. With a longer queue,
// a GPU never waits for a slower encoder. With tiles a longer queue is useless, because frames come
// only when the GPU has finished.
void LengthenQueue(const MemoryJob& job, const PlanLimits& limits, ResidencyChoice& choice) {
  // Limit of the queue's bytes, which is enough for 121 frames of 1920x1088.
  constexpr int64_t kMostQueuedBytes = int64_t{1} << 30;
  if (!job.decodes || !choice.decode_tiles.IsWhole()) return;
  const int64_t frame_bytes = std::max<int64_t>(job.frame_pixels * kColors, 1);
  const int64_t frames = std::min(job.frames, kMostQueuedBytes / frame_bytes);
  if (frames <= kLeastQueuedFrames) return;
  ResidencyChoice longer = choice;
  longer.queued_frames = static_cast<int>(frames);
  longer.decoding.host += static_cast<uint64_t>((frames - kLeastQueuedFrames) * frame_bytes);
  longer.host_peak = std::max(longer.host_peak, longer.decoding.host);
  if (Fits(longer, limits)) choice = std::move(longer);
}

// Adds optional speed-ups one by one, as long as they fit.
void Extend(const Sums& sums, const Activations& activations, const MemoryJob& job,
            const PlanLimits& limits, ResidencyChoice& choice) {
  if (job.batches_guidance) {
    const ResidencyChoice batched =
        sums.Choose(activations, choice.decode_tiles, true, choice.prefetch_experts);
    if (Fits(batched, limits)) choice = batched;
  }
  bool next_is_away = false;  // an expert that works after another expert
  for (size_t expert = 2; expert + 1 < choice.policies.size(); ++expert) {
    const bool follows = job.expert_steps[expert - 2] > 0 && job.expert_steps[expert - 1] > 0;
    next_is_away = next_is_away || (follows && WaitsOnHost(choice.policies[expert]));
  }
  if (next_is_away) {
    const ResidencyChoice prefetching =
        sums.Choose(activations, choice.decode_tiles, choice.batched_guidance, true);
    if (Fits(prefetching, limits)) choice = prefetching;
  }
  if (const uint64_t recorded = RecordedBytes(job, choice); recorded > 0) {
    ResidencyChoice recording =
        sums.Choose(ActivationsOf(job, choice.decode_tiles, recorded), choice.decode_tiles,
                    choice.batched_guidance, choice.prefetch_experts);
    recording.record_forwards = true;
    if (Fits(recording, limits)) choice = std::move(recording);
  }
  LengthenQueue(job, limits, choice);
}

}  // namespace

std::optional<ResidencyChoice> ChooseResidency(const std::vector<PlannedComponent>& components,
                                               const MemoryJob& job, const PlanLimits& limits) {
  for (const TileGrid& grid : GridsOf(job, limits.device_memory_bytes > 0)) {
    const Activations activations = ActivationsOf(job, grid);
    std::optional<ResidencyChoice> best;
    double best_cost = std::numeric_limits<double>::infinity();
    Policies policies(components.size());
    ForEachPolicies(components, limits, policies, 0, [&] {
      const Sums sums(components, job, policies, limits);
      ResidencyChoice choice = sums.Choose(activations, grid, false, false);
      const double cost = sums.Cost();
      if (Fits(choice, limits) && cost < best_cost) {
        best = std::move(choice);
        best_cost = cost;
      }
    });
    if (!best.has_value()) continue;
    const Policies chosen = best->policies;
    Extend(Sums(components, job, chosen, limits), activations, job, limits, *best);
    return best;
  }
  return std::nullopt;
}

LeastDemand FindLeastDemand(const std::vector<PlannedComponent>& components, const MemoryJob& job,
                            const PlanLimits& limits) {
  std::optional<ResidencyChoice> least;
  std::optional<ResidencyChoice> least_host;
  for (const TileGrid& grid : GridsOf(job, /*limited=*/true)) {
    const Activations activations = ActivationsOf(job, grid);
    Policies policies(components.size());
    ForEachPolicies(components, limits, policies, 0, [&] {
      ResidencyChoice choice =
          Sums(components, job, policies, limits).Choose(activations, grid, false, false);
      if (FitsDevice(choice, limits) &&
          (!least_host.has_value() || choice.host_peak < least_host->host_peak)) {
        least_host = choice;
      }
      if (!least.has_value() || choice.peak < least->peak) least = std::move(choice);
    });
  }
  const bool of_host = least_host.has_value();
  const ResidencyChoice& choice = of_host ? *least_host : *least;
  const auto size = [&](const StageMemory& memory) {
    return of_host ? memory.host : memory.total();
  };
  LeastDemand demand{StageKind::kT5Encoding, choice.text_encoding, of_host};
  const auto consider = [&](StageKind stage, const StageMemory& memory) {
    if (size(memory) > size(demand.memory)) demand = {stage, memory, of_host};
  };
  consider(job.preprocess, choice.preprocess);
  consider(StageKind::kVaeEncoding, choice.vae_encoding);
  for (const StageMemory& step : choice.steps) consider(StageKind::kStepInference, step);
  consider(StageKind::kVaeDecoding, choice.decoding);
  return demand;
}

}  // namespace wan
