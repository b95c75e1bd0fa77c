#include "server/conversion/convert.h"

#include <array>
#include <optional>
#include <utility>

#include "engine/api/compute_revision.h"
#include "engine/api/errors.h"
#include "engine/api/utf8.h"
#include "google/rpc/error_details.pb.h"
#include "proto/enum_words.h"
#include "server/conversion/color.h"
#include "server/conversion/errors.h"
#include "server/conversion/public_text.h"

namespace wan::server {
namespace {

struct OutputFacts {
  OutputKind kind;
  wan::v1::OutputKind proto;
  std::string_view file;
  std::string_view content_type;
};

constexpr std::array<OutputFacts, 3> kOutputs = {{
    {OutputKind::kMp4, wan::v1::OUTPUT_KIND_MP4, "video.mp4", "video/mp4"},
    {OutputKind::kLosslessMkv, wan::v1::OUTPUT_KIND_LOSSLESS_MKV, "video.mkv", "video/x-matroska"},
    {OutputKind::kLatents, wan::v1::OUTPUT_KIND_LATENTS, "latents.safetensors",
     "application/octet-stream"},
}};

const OutputFacts& FactsOf(OutputKind kind) {
  for (const OutputFacts& facts : kOutputs) {
    if (facts.kind == kind) return facts;
  }
  return kOutputs.front();
}

// Sets an optional field of the message if the value is known.
template <typename T, typename Message>
void Set(Message& message, void (Message::*set)(T), const std::optional<T>& value) {
  if (value.has_value()) (message.*set)(*value);
}

wan::v1::BlockProfile ToProto(const BlockProfile& profile) {
  wan::v1::BlockProfile message;
  message.set_part(profile.part);
  message.set_block(profile.block);
  message.set_texts(profile.texts);
  double seconds = 0;
  for (const TimedOperator& timed : profile.operators) {
    seconds += timed.seconds;
    wan::v1::BlockOperator& added = *message.add_operators();
    added.set_name(std::string(timed.work.name));
    added.set_operator_class(std::string(timed.work.operator_class));
    added.set_seconds(timed.seconds);
    if (timed.work.flops > 0) added.set_flops(timed.work.flops);
    if (timed.work.bytes > 0) added.set_bytes(timed.work.bytes);
  }
  message.set_seconds(seconds);
  return message;
}

}  // namespace

GenerationRequest ToEngineRequest(const wan::v1::GenerationRequest& request, JobInputs inputs) {
  GenerationRequest result;
  result.model = request.model();
  result.prompt = request.prompt();
  if (request.has_negative_prompt()) result.negative_prompt = request.negative_prompt();
  result.image = std::move(inputs.image);
  result.initial_latents = std::move(inputs.initial_latents);
  result.latents = std::move(inputs.latents);
  if (request.has_strength()) result.strength = request.strength();
  if (request.has_background()) result.background = ParseColor(request.background());
  if (request.has_width()) result.width = request.width();
  if (request.has_height()) result.height = request.height();
  result.size_is_exact = request.exact_size();
  if (request.has_num_frames()) result.num_frames = request.num_frames();
  if (request.has_fps()) result.fps = request.fps();
  if (request.has_h264_crf()) result.h264_crf = request.h264_crf();
  if (request.has_steps()) result.steps = request.steps();
  result.guidance_scale.assign(request.guidance_scale().begin(), request.guidance_scale().end());
  if (request.has_shift()) result.shift = request.shift();
  result.sigmas.assign(request.sigmas().begin(), request.sigmas().end());
  if (request.has_boundary_step()) result.boundary_step = request.boundary_step();
  result.solver = std::string(WordOf(request.solver()));
  // A seed that is negative or unset means a random seed.
  if (request.has_seed() && request.seed() >= 0) result.seed = request.seed();
  for (const int output : request.outputs()) {
    for (const OutputFacts& facts : kOutputs) {
      if (facts.proto == output) result.outputs.push_back(facts.kind);
    }
  }
  result.preview_interval = request.preview_interval();
  result.profile = request.profile();
  result.calibrate = request.calibrate();
  result.progressive = request.progressive();
  result.quality = ParseQuality(WordOf(request.quality()));
  result.vae_precision = ParseVaePrecision(WordOf(request.vae_precision()));
  result.decoder = ParseDecoder(WordOf(request.decoder()));
  for (const wan::v1::LoraScale& lora : request.loras()) {
    LoraScale& added = result.loras.emplace_back();
    added.name = lora.name();
    if (lora.has_scale()) added.scale = lora.scale();
    if (lora.has_high_scale()) added.high_scale = lora.high_scale();
    if (lora.has_low_scale()) added.low_scale = lora.low_scale();
  }
  return result;
}

GenerationRequest RequestOf(const wan::v1::Job& job, JobInputs inputs) {
  GenerationRequest request = ToEngineRequest(job.request(), std::move(inputs));
  // The stored request has the size that the first plan resolved; do not resolve it again.
  request.size_is_exact = true;
  request.quality = ParseQuality(QualityOf(job.request()));
  return request;
}

std::string_view QualityOf(const wan::v1::GenerationRequest& stored) {
  const std::string_view word = WordOf(stored.quality());
  return word.empty() ? NameOf(Quality::kExact) : word;
}

wan::v1::GenerationRequest ToProto(const GenerationRequest& request) {
  wan::v1::GenerationRequest result;
  result.set_model(request.model);
  result.set_prompt(request.prompt);
  if (request.negative_prompt) result.set_negative_prompt(*request.negative_prompt);
  if (request.background) result.set_background(ColorText(*request.background));
  if (request.width) result.set_width(*request.width);
  if (request.height) result.set_height(*request.height);
  result.set_exact_size(request.size_is_exact);
  if (request.num_frames) result.set_num_frames(*request.num_frames);
  if (request.fps) result.set_fps(*request.fps);
  if (request.h264_crf) result.set_h264_crf(*request.h264_crf);
  if (request.steps) result.set_steps(*request.steps);
  result.mutable_guidance_scale()->Add(request.guidance_scale.begin(),
                                       request.guidance_scale.end());
  if (request.shift) result.set_shift(*request.shift);
  result.mutable_sigmas()->Add(request.sigmas.begin(), request.sigmas.end());
  if (request.boundary_step) result.set_boundary_step(*request.boundary_step);
  if (const auto solver = ValueOf<wan::v1::Solver>(request.solver)) result.set_solver(*solver);
  if (request.seed) result.set_seed(*request.seed);
  if (request.strength) result.set_strength(*request.strength);
  for (const OutputKind kind : request.outputs) result.add_outputs(ToProto(kind));
  result.set_preview_interval(request.preview_interval);
  result.set_profile(request.profile);
  result.set_calibrate(request.calibrate);
  result.set_progressive(request.progressive);
  if (request.quality) {
    result.set_quality(*ValueOf<wan::v1::Quality>(NameOf(*request.quality)));
  }
  if (request.vae_precision) {
    result.set_vae_precision(*ValueOf<wan::v1::VaePrecision>(NameOf(*request.vae_precision)));
  }
  if (request.decoder) {
    result.set_decoder(*ValueOf<wan::v1::Decoder>(NameOf(*request.decoder)));
  }
  for (const LoraScale& lora : request.loras) {
    wan::v1::LoraScale& added = *result.add_loras();
    added.set_name(lora.name);
    added.set_scale(lora.scale);
    if (lora.high_scale) added.set_high_scale(*lora.high_scale);
    if (lora.low_scale) added.set_low_scale(*lora.low_scale);
  }
  return result;
}

wan::v1::InputImage ToProto(const InputImage& image) {
  wan::v1::InputImage message;
  message.set_format(image.format);
  message.set_width(image.width);
  message.set_height(image.height);
  message.set_exif_orientation(image.exif_orientation);
  if (image.blended_over) message.set_blended_over(ColorText(*image.blended_over));
  message.set_bits_per_sample(image.bits_per_sample);
  message.set_grey(image.grey);
  return message;
}

wan::v1::OutputKind ToProto(OutputKind kind) { return FactsOf(kind).proto; }

wan::v1::Omission ToProto(const Omission& omission) {
  wan::v1::Omission message;
  if (omission.output.has_value()) message.set_output(ToProto(*omission.output));
  *message.mutable_error() = ToProto(omission.status);
  return message;
}

wan::v1::Provenance ProvenanceOf(const GenerationPlan& plan, const DeviceDescription& device) {
  wan::v1::Provenance provenance;
  provenance.set_noise_device(device.device.substr(0, device.device.find(':')));
  provenance.set_device_name(ToUtf8(device.name));
  provenance.set_dtype(device.dtype);
  provenance.set_libraries(device.libraries);
  provenance.set_compute_revision(kComputeRevision);
  provenance.set_batched_guidance(plan.batched_guidance);
  provenance.set_decode_tile_rows(plan.decode_tiles.rows);
  provenance.set_decode_tile_columns(plan.decode_tiles.columns);
  Set(provenance, &wan::v1::Provenance::set_unguided_from, plan.unguided_from);
  for (const ComponentResidency& component : plan.residency) {
    if (component.policy == ResidencyPolicy::kCpu) {
      provenance.add_cpu_components(std::string(NameOf(component.component)));
    }
  }
  for (std::string& name : NamesOf(plan.eight_bit_weights)) {
    provenance.add_eight_bit_weights(std::move(name));
  }
  provenance.mutable_exact_blocks()->Add(plan.exact_blocks.begin(), plan.exact_blocks.end());
  return provenance;
}

std::string_view ArtifactFileName(OutputKind kind) { return FactsOf(kind).file; }
std::string_view ArtifactContentType(OutputKind kind) { return FactsOf(kind).content_type; }

wan::v1::StageReport ToProto(const SpanRecord& record) {
  using Report = wan::v1::StageReport;
  Report report;
  report.set_stage(NameOf(record.stage));
  *report.mutable_start_time() = ToProto(record.start);
  report.set_seconds(record.seconds);
  const ResourceUsage& usage = record.usage;
  Set(report, &Report::set_gpu_memory_start_bytes, usage.gpu_memory_start_bytes);
  Set(report, &Report::set_gpu_memory_end_bytes, usage.gpu_memory_end_bytes);
  Set(report, &Report::set_gpu_memory_peak_bytes, usage.gpu_memory_peak_bytes);
  Set(report, &Report::set_gpu_memory_used_bytes, usage.gpu_memory_used_bytes);
  Set(report, &Report::set_cpu_percent, usage.cpu_percent);
  Set(report, &Report::set_process_cpu_percent, usage.process_cpu_percent);
  Set(report, &Report::set_system_memory_used_bytes, usage.system_memory_used_bytes);
  Set(report, &Report::set_process_memory_peak_bytes, usage.process_memory_peak_bytes);
  Set(report, &Report::set_sm_activity_percent, usage.sm_activity_percent);
  if (usage.sm_activity_percent) report.set_load(record.seconds * *usage.sm_activity_percent);
  Set(report, &Report::set_gpu_memory_reserved_peak_bytes, usage.gpu_memory_reserved_peak_bytes);
  const GpuUsage& gpu = usage.gpu;
  Set(report, &Report::set_sm_occupancy_percent, gpu.sm_occupancy_percent);
  Set(report, &Report::set_tensor_activity_percent, gpu.tensor_activity_percent);
  Set(report, &Report::set_dram_bandwidth_percent, gpu.dram_bandwidth_percent);
  Set(report, &Report::set_power_watts, gpu.power_watts);
  Set(report, &Report::set_power_peak_watts, gpu.power_peak_watts);
  Set(report, &Report::set_energy_joules, gpu.energy_joules);
  Set(report, &Report::set_sm_clock_mhz, gpu.sm_clock_mhz);
  Set(report, &Report::set_sm_clock_min_mhz, gpu.sm_clock_min_mhz);
  Set(report, &Report::set_memory_clock_mhz, gpu.memory_clock_mhz);
  Set(report, &Report::set_temperature_peak_celsius, gpu.temperature_peak_celsius);
  report.mutable_throttle_reasons()->Assign(gpu.throttle_reasons.begin(),
                                            gpu.throttle_reasons.end());
  Set(report, &Report::set_throttled_seconds, gpu.throttled_seconds);
  Set(report, &Report::set_gpu_processes, gpu.processes);
  Set(report, &Report::set_gpu_weights_peak_bytes, usage.gpu_weights_peak_bytes);
  for (const SpanPart& part : record.parts) {
    wan::v1::StagePart& added = *report.add_parts();
    added.set_name(part.name);
    added.set_start_seconds(part.start_seconds);
    added.set_seconds(part.seconds);
    Set(added, &wan::v1::StagePart::set_bytes, part.bytes);
    Set(added, &wan::v1::StagePart::set_flops, part.flops);
    Set(added, &wan::v1::StagePart::set_change_ratio, part.change_ratio);
  }
  if (record.block_profile) *report.mutable_block_profile() = ToProto(*record.block_profile);
  if (record.step) report.set_expert(std::string(NameOf(record.step->expert)));
  if (!record.status.ok()) {
    const absl::string_view message = record.status.message();
    report.set_error(message.empty() ? absl::StatusCodeToString(record.status.code())
                                     : ToUtf8(WithoutFolders({message.data(), message.size()})));
  }
  return report;
}

wan::v1::StepProgress ToStepProgress(const SpanRecord& record) {
  wan::v1::StepProgress progress;
  progress.set_seconds(record.seconds);
  if (record.step) {
    progress.set_step(record.step->step + 1);
    progress.set_total(record.step->total);
    progress.set_expert(std::string(NameOf(record.step->expert)));
    progress.set_timestep(record.step->timestep);
  }
  using Progress = wan::v1::StepProgress;
  Set(progress, &Progress::set_sm_activity_percent, record.usage.sm_activity_percent);
  Set(progress, &Progress::set_gpu_memory_peak_bytes, record.usage.gpu_memory_peak_bytes);
  return progress;
}

wan::v1::DeviceSample ToProto(const DeviceSample& sample, absl::Time time) {
  using Message = wan::v1::DeviceSample;
  Message result;
  result.set_device(sample.device);
  result.set_name(ToUtf8(sample.name));
  *result.mutable_time() = ToProto(time);
  Set(result, &Message::set_sm_activity_percent, sample.sm_activity_percent);
  Set(result, &Message::set_memory_used_bytes, sample.memory_used_bytes);
  Set(result, &Message::set_memory_total_bytes, sample.memory_total_bytes);
  Set(result, &Message::set_allocator_bytes, sample.allocator_bytes);
  Set(result, &Message::set_power_watts, sample.power_watts);
  Set(result, &Message::set_temperature_celsius, sample.temperature_celsius);
  Set(result, &Message::set_sm_clock_mhz, sample.sm_clock_mhz);
  Set(result, &Message::set_memory_clock_mhz, sample.memory_clock_mhz);
  Set(result, &Message::set_cpu_percent, sample.cpu_percent);
  Set(result, &Message::set_process_cpu_percent, sample.process_cpu_percent);
  Set(result, &Message::set_process_memory_bytes, sample.process_memory_bytes);
  Set(result, &Message::set_process_memory_peak_bytes, sample.process_memory_peak_bytes);
  result.set_uuid(sample.uuid);
  Set(result, &Message::set_sm_occupancy_percent, sample.sm_occupancy_percent);
  Set(result, &Message::set_tensor_activity_percent, sample.tensor_activity_percent);
  Set(result, &Message::set_dram_bandwidth_percent, sample.dram_bandwidth_percent);
  Set(result, &Message::set_energy_joules, sample.energy_joules);
  result.mutable_throttle_reasons()->Assign(sample.throttle_reasons.begin(),
                                            sample.throttle_reasons.end());
  Set(result, &Message::set_throttled_seconds, sample.throttled_seconds);
  Set(result, &Message::set_gpu_processes, sample.processes);
  return result;
}

wan::v1::Model ToProto(const ModelDescription& description) {
  wan::v1::Model model;
  model.set_name("models/" + description.name);
  model.set_path(ToUtf8(description.path));
  model.set_family(std::string(NameOf(description.family)));
  model.set_layout(description.layout);
  model.set_distillation(ToUtf8(description.distillation));
  model.set_tiny_decoder(description.has_tiny_decoder);
  if (!description.tiny_decoder_error.ok()) {
    *model.mutable_tiny_decoder_error() = ToProto(description.tiny_decoder_error);
  }
  for (const ComponentDescription& component : description.components) {
    wan::v1::ModelComponent& added = *model.add_components();
    added.set_name(std::string(NameOf(component.component)));
    added.set_bytes(component.bytes);
    added.set_parameters(component.parameters);
    added.set_device(component.device);
    added.set_dtype(component.dtype);
    added.set_stored_as(component.stored_as);
  }
  for (const LoraDescription& lora : description.loras) *model.add_loras() = ToProto(lora);
  for (const SkippedLora& skipped : description.skipped_loras) {
    *model.add_skipped_loras() = ToProto(skipped);
  }
  for (const VideoShape& shape : description.warm_shapes) {
    *model.add_warm_shapes() = ToProto(shape);
  }
  *model.mutable_defaults() = ToProto(description.defaults);
  model.set_accepts_image(description.accepts_image);
  model.set_spatial_stride(description.spatial_stride);
  model.set_temporal_stride(description.temporal_stride);
  return model;
}

VideoShape ToVideoShape(const wan::v1::Shape& shape) {
  return {shape.width(), shape.height(), shape.num_frames()};
}

wan::v1::Shape ToProto(const VideoShape& shape) {
  wan::v1::Shape result;
  result.set_width(shape.width);
  result.set_height(shape.height);
  result.set_num_frames(shape.num_frames);
  return result;
}

google::protobuf::Timestamp ToProto(absl::Time time) {
  const int64_t seconds = absl::ToUnixSeconds(time);  // rounds the time down to whole seconds
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(seconds);
  timestamp.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return timestamp;
}

absl::Time ToTime(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) + absl::Nanoseconds(timestamp.nanos());
}

google::rpc::Status ToProto(const absl::Status& status) {
  google::rpc::Status result;
  result.set_code(static_cast<int>(status.code()));
  const absl::string_view message = status.message();
  result.set_message(ToUtf8({message.data(), message.size()}));
  if (status.ok()) return result;

  google::rpc::ErrorInfo info;
  info.set_domain(std::string(kErrorDomain));
  const std::string reason = ReasonOf(status);
  info.set_reason(reason.empty() ? absl::StatusCodeToString(status.code()) : reason);
  for (const auto& [key, value] : MetadataOf(status)) {
    (*info.mutable_metadata())[key] = ToUtf8(value);
  }
  result.add_details()->PackFrom(info);

  const std::vector<FieldViolation> violations = FieldViolationsOf(status);
  if (!violations.empty()) {
    google::rpc::BadRequest bad_request;
    for (const FieldViolation& violation : violations) {
      auto& added = *bad_request.add_field_violations();
      added.set_field(ToUtf8(violation.field));
      added.set_description(ToUtf8(violation.description));
    }
    result.add_details()->PackFrom(bad_request);
  }
  if (const std::optional<QuotaFailure> quota = QuotaFailureOf(status)) {
    google::rpc::QuotaFailure failure;
    auto& violation = *failure.add_violations();
    violation.set_subject(ToUtf8(quota->subject));
    violation.set_description(ToUtf8(quota->description));
    result.add_details()->PackFrom(failure);
  }
  if (const std::optional<absl::Duration> delay = RetryDelayOf(status)) {
    google::rpc::RetryInfo retry;
    const int64_t seconds = absl::ToInt64Seconds(*delay);
    retry.mutable_retry_delay()->set_seconds(seconds);
    retry.mutable_retry_delay()->set_nanos(
        static_cast<int32_t>(absl::ToInt64Nanoseconds(*delay - absl::Seconds(seconds))));
    result.add_details()->PackFrom(retry);
  }
  return result;
}

std::string ErrorReasonOf(const google::rpc::Status& status) {
  for (const google::protobuf::Any& detail : status.details()) {
    google::rpc::ErrorInfo info;
    if (detail.UnpackTo(&info)) return info.reason();
  }
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(status.code()));
}

}  // namespace wan::server
