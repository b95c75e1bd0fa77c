#include "client/wanctl/listings.h"

#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/error.h"
#include "client/wanctl/lora_text.h"
#include "client/wanctl/text.h"
#include "client/wanctl/values.h"
#include "proto/enum_words.h"

namespace wan::client {
namespace {

using wan::v1::GenerationRequest;
using wan::v1::Job;

// Returns the name of a state of a job or model without its prefix: "RUNNING" for
// JOB_STATE_RUNNING.
template <typename State>
std::string StateName(State state) {
  if (state == State()) return "UNSPECIFIED";
  const std::string word(WordOf(state));
  return word.empty() ? std::string(kAbsent) : absl::AsciiStrToUpper(word);
}

// Returns the colour in which a state of a job or model is shown: green for success, yellow for
// waiting, red for failure.
Colour StateColour(std::string_view state) {
  if (state == "RUNNING" || state == "COMPLETED" || state == "READY") return Colour::kGreen;
  if (state == "QUEUED" || state == "LOADING") return Colour::kYellow;
  return state == "FAILED" ? Colour::kRed : Colour::kNone;
}

std::string OrAbsent(const std::string& text) { return text.empty() ? kAbsent : Printable(text); }

std::string Figure(bool present, double value, int digits) {
  return present ? absl::StrFormat("%.*f", digits, value) : kAbsent;
}

std::string Gibibytes(bool present, uint64_t bytes) {
  return Figure(present, static_cast<double>(bytes) / (1 << 30), 2);
}

std::string Shortened(const std::string& text, int columns) {
  const std::string start = CutToWidth(text, columns);
  return start.size() < text.size() ? start + "..." : text;
}

std::string ProgressText(const Job& job) {
  if (job.state() == wan::v1::JOB_STATE_QUEUED && job.has_queue_position()) {
    if (job.queue_position() == 0) return "next to run";
    return absl::StrCat("behind ", job.queue_position(),
                        job.queue_position() == 1 ? " job" : " jobs");
  }
  if (job.state() != wan::v1::JOB_STATE_RUNNING || !job.has_progress()) return kAbsent;
  const wan::v1::StepProgress& progress = job.progress();
  std::string text = absl::StrCat(progress.step(), "/", progress.total());
  if (progress.has_eta_seconds()) {
    absl::StrAppend(&text, ", ", FormatClock(progress.eta_seconds()), " left");
  }
  return text;
}

std::string SolverName(wan::v1::Solver solver) {
  const std::string_view word = WordOf(solver);
  return std::string(word.empty() ? "the model's solver" : word);
}

// Returns, for example, "1280x704, 121 frames, 24 fps", without unset fields.
std::string SizeText(const GenerationRequest& request) {
  std::vector<std::string> parts;
  if (request.has_width() && request.has_height()) {
    parts.push_back(absl::StrCat(request.width(), "x", request.height()));
  }
  if (request.has_num_frames()) parts.push_back(absl::StrCat(request.num_frames(), " frames"));
  if (request.has_fps()) parts.push_back(absl::StrCat(request.fps(), " fps"));
  return absl::StrJoin(parts, ", ");
}

// Returns, for example, "50 steps of unipc, guidance 5, shift 5, seed 42", without unset fields.
std::string SamplingText(const GenerationRequest& request) {
  std::vector<std::string> parts;
  if (request.has_steps()) {
    parts.push_back(absl::StrCat(request.steps(), " steps of ", SolverName(request.solver())));
  }
  if (!request.guidance_scale().empty()) {
    parts.push_back(absl::StrCat("guidance ", absl::StrJoin(request.guidance_scale(), ",")));
  }
  if (request.has_shift()) parts.push_back(absl::StrCat("shift ", request.shift()));
  if (!request.sigmas().empty()) {
    parts.push_back(absl::StrCat("sigmas ", absl::StrJoin(request.sigmas(), ",")));
  }
  if (request.has_boundary_step()) {
    parts.push_back(absl::StrCat("low noise from step ", request.boundary_step() + 1));
  }
  if (request.has_seed()) parts.push_back(absl::StrCat("seed ", request.seed()));
  if (request.has_strength()) parts.push_back(absl::StrCat("strength ", request.strength()));
  return absl::StrJoin(parts, ", ");
}

// Returns, for example, "jobs/a1, sha256 9f86d081884c..."; empty without latents.
std::string LatentsText(bool present, const wan::v1::LatentsSource& source) {
  if (!present) return "";
  const std::string digest = absl::StrCat("sha256 ", Printable(source.sha256()));
  return source.job().empty() ? digest : absl::StrCat(Printable(source.job()), ", ", digest);
}

// The default quality, which is not shown. A server without the field computes with this quality.
constexpr char kExact[] = "exact";

std::string QualityName(const GenerationRequest& request) {
  const std::string_view word = WordOf(request.quality());
  return std::string(word.empty() ? kExact : word);
}

// Builds lines of the form "Name: text"; leaves out lines without a text.
class Lines {
 public:
  void Add(const char* name, const std::string& text) {
    if (!text.empty()) absl::StrAppendFormat(&lines_, "%-12s %s\n", absl::StrCat(name, ":"), text);
  }
  void AddExactBlocks(const google::protobuf::RepeatedField<int32_t>& blocks) {
    if (!blocks.empty()) Add("Exact", absl::StrCat("blocks ", absl::StrJoin(blocks, ", ")));
  }
  // Adds the quality and the decoder if they are not the default ones.
  void AddQuality(const GenerationRequest& request) {
    if (QualityName(request) != kExact) Add("Quality", QualityName(request));
    if (request.decoder() == wan::v1::DECODER_TINY) Add("Decoder", "tiny");
  }
  std::string Take() { return std::move(lines_); }

 private:
  std::string lines_;
};

// Adds the provenance of the latest attempt (device, libraries, versions): the video's bits depend
// on it, on the request and on the model's files.
void AddProvenance(const wan::v1::Provenance& provenance, Lines& lines) {
  lines.Add("Device", Printable(provenance.device_name()));
  lines.Add("Dtype", Printable(provenance.dtype()));
  lines.Add("Libraries", Printable(provenance.libraries()));
  lines.Add("Noise",
            provenance.noise_device().empty()
                ? ""
                : absl::StrCat("drawn by the generator of ", Printable(provenance.noise_device())));
  if (provenance.batched_guidance()) lines.Add("Guidance", "both forwards of a step in one batch");
  const int64_t tiles = int64_t{provenance.decode_tile_rows()} * provenance.decode_tile_columns();
  if (tiles > 1) {
    lines.Add("Decoded in", absl::StrCat(provenance.decode_tile_rows(), "x",
                                         provenance.decode_tile_columns(), " tiles"));
  }
  lines.Add("On the CPU", Printable(absl::StrJoin(provenance.cpu_components(), ", ")));
  lines.Add("In 8 bits", Printable(absl::StrJoin(provenance.eight_bit_weights(), ", ")));
  lines.AddExactBlocks(provenance.exact_blocks());
  lines.Add("Server", Printable(provenance.server_version()));
  if (provenance.compute_revision() != 0) {
    lines.Add("Computation", absl::StrCat("revision ", provenance.compute_revision()));
  }
}

// Adds the fields of the request that decide the video.
void AddRequest(const GenerationRequest& request, const std::string& image_sha256, Lines& lines) {
  lines.Add("Model", Printable(request.model()));
  lines.Add("Prompt", Printable(request.prompt()));
  lines.Add("Not", Printable(request.negative_prompt()));
  lines.Add("Image", Printable(image_sha256));
  lines.Add("First noise", LatentsText(request.has_initial_latents(), request.initial_latents()));
  lines.Add("Latents", LatentsText(request.has_latents(), request.latents()));
  lines.Add("Video", SizeText(request));
  lines.Add("Sampling", SamplingText(request));
  lines.AddQuality(request);
  lines.Add("LoRAs", Printable(LorasText(request)));
}

// Describes the request's image and what the server did with it: "PNG, 320x192, turned as EXIF
// orientation 6 says, blended over #ffffff, 16 bits scaled to 8". The text is empty if the job has
// no image.
std::string ImageText(const Job& job) {
  if (!job.has_input_image()) return "";
  constexpr int kBits = 8;  // bits of a pixel's channel as the model sees it
  const wan::v1::InputImage& image = job.input_image();
  std::string text =
      absl::StrCat(Printable(image.format()), ", ", image.width(), "x", image.height());
  if (image.exif_orientation() > 1) {
    absl::StrAppend(&text, ", turned as EXIF orientation ", image.exif_orientation(), " says");
  }
  if (!image.blended_over().empty()) {
    absl::StrAppend(&text, ", blended over ", Printable(image.blended_over()));
  }
  if (image.bits_per_sample() != kBits) {
    absl::StrAppend(&text, ", ", image.bits_per_sample(), " bits scaled to ", kBits);
  }
  if (image.grey()) absl::StrAppend(&text, ", grey");
  return text;
}

void AddArtifacts(const google::protobuf::RepeatedPtrField<wan::v1::Artifact>& artifacts,
                  Lines& lines) {
  for (const wan::v1::Artifact& artifact : artifacts) {
    lines.Add("Artifact",
              absl::StrCat(Printable(artifact.name()), "  ", FormatBytes(artifact.size_bytes()),
                           "  sha256 ", Printable(artifact.sha256())));
  }
}

// Returns the name of an optional output that failed, and its error: "previews: INTERNAL: ...".
std::string OmissionText(const wan::v1::Omission& omission) {
  const std::string what = omission.output() == wan::v1::OUTPUT_KIND_UNSPECIFIED
                               ? "previews"
                               : std::string(ArtifactKindName(omission.output()));
  return absl::StrCat(what, ": ", FormatError(FromProto(omission.error())));
}

std::string LostAttemptText(const wan::v1::LostAttempt& lost) {
  std::string text =
      absl::StrCat("attempt ", lost.attempt(), ", last reported ", FormatTime(lost.end_time()));
  if (!lost.stage().empty()) absl::StrAppend(&text, " in ", Printable(lost.stage()));
  if (lost.steps_kept() > 0) absl::StrAppend(&text, ", ", lost.steps_kept(), " steps kept");
  return text;
}

// Returns the lines that tell what the server has recognised in the model's files.
std::string RecognisedLines(const wan::v1::Model& model) {
  const std::string name = Printable(model.name());
  std::string lines;
  if (!model.distillation().empty()) {
    absl::StrAppend(&lines, name, ": recognised as ", Printable(model.distillation()), "\n");
  }
  if (model.tiny_decoder()) absl::StrAppend(&lines, name, ": has a tiny decoder\n");
  if (model.has_tiny_decoder_error()) {
    absl::StrAppend(&lines, name, ": its tiny decoder cannot be used: ",
                    Printable(model.tiny_decoder_error().message()), "\n");
  }
  return lines;
}

}  // namespace

std::string JobTable(const std::vector<Job>& jobs, bool colours) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(jobs.size());
  for (const Job& job : jobs) {
    rows.push_back({Printable(job.name()), StateName(job.state()), OrAbsent(job.request().model()),
                    OrAbsent(FormatTime(job.create_time())), ProgressText(job),
                    QualityName(job.request()), Shortened(OrAbsent(job.request().prompt()), 40)});
  }
  return FormatTable({{"Job"},
                      {"State", Align::kLeft, StateColour},
                      {"Model"},
                      {"Created"},
                      {"Progress"},
                      {"Quality", Align::kLeft, nullptr, kExact},
                      {"Prompt"}},
                     rows, colours);
}

std::string JobText(const Job& job) {
  const GenerationRequest& request = job.request();
  Lines lines;
  lines.Add("Job", Printable(job.name()));
  lines.Add("State", job.attempt() > 1
                         ? absl::StrCat(StateName(job.state()), " (attempt ", job.attempt(), ")")
                         : StateName(job.state()));
  const std::string progress = ProgressText(job);
  if (progress != kAbsent) lines.Add("Progress", progress);
  AddRequest(request, job.image_sha256(), lines);
  lines.Add("Image read", ImageText(job));
  if (request.priority() != 0) lines.Add("Priority", absl::StrCat(request.priority()));
  if (request.resume() == wan::v1::RESUME_REQUIRE) lines.Add("Resume", "require");
  lines.Add("Request ID", Printable(request.request_id()));
  const std::map<std::string, std::string> labels(request.labels().begin(), request.labels().end());
  lines.Add("Labels", Printable(absl::StrJoin(labels, ", ", absl::PairFormatter("="))));
  lines.Add("Trace", Printable(job.trace().trace_id()));
  lines.Add("Created", FormatTime(job.create_time()));
  lines.Add("Started", FormatTime(job.start_time()));
  lines.Add("Ended", FormatTime(job.end_time()));
  lines.Add("Deadline", FormatTime(request.deadline()));
  AddArtifacts(job.artifacts(), lines);
  for (const wan::v1::Omission& omission : job.omissions()) {
    lines.Add("Missing", OmissionText(omission));
  }
  for (const wan::v1::LostAttempt& lost : job.lost_attempts()) {
    // Skip an entry without an end, because it is the attempt that is running.
    if (lost.has_end_time()) lines.Add("Lost", LostAttemptText(lost));
  }
  AddProvenance(job.provenance(), lines);
  if (job.has_error()) lines.Add("Error", FormatError(FromProto(job.error())));
  return lines.Take();
}

std::string ReceiptText(const wan::v1::Receipt& receipt) {
  Lines lines;
  lines.Add("Receipt", Printable(receipt.name()));
  AddRequest(receipt.request(), receipt.image_sha256(), lines);
  AddProvenance(receipt.provenance(), lines);
  for (const wan::v1::ModelFile& file : receipt.files()) {
    lines.Add("File", absl::StrCat(Printable(file.path()), "  ", FormatBytes(file.size_bytes()),
                                   "  sha256 ",
                                   file.sha256().empty() ? "not known" : Printable(file.sha256())));
  }
  AddArtifacts(receipt.artifacts(), lines);
  return lines.Take();
}

std::string ModelTable(const std::vector<wan::v1::Model>& models, bool colours) {
  std::vector<std::vector<std::string>> rows;
  std::string widened_text;
  std::string recognised;
  std::string loras_text;
  std::string errors;
  for (const wan::v1::Model& model : models) {
    uint64_t bytes = 0;
    std::vector<std::string> devices, dtypes, shapes, loras;
    const auto add = [](std::vector<std::string>& names, const std::string& name) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    // If a component is on several devices, the field `device` lists them, separated by commas.
    const auto add_devices = [&](const wan::v1::ModelComponent& component) {
      for (const absl::string_view device : absl::StrSplit(component.device(), ',')) {
        add(devices, std::string(device));
      }
    };
    for (const wan::v1::ModelComponent& component : model.components()) {
      bytes += component.bytes();
      add_devices(component);
      add(dtypes, component.dtype());
      if (component.stored_as().empty()) continue;
      absl::StrAppend(&widened_text, Printable(model.name()), " ", Printable(component.name()),
                      ": widened from ", Printable(component.stored_as()), "\n");
    }
    for (const wan::v1::ModelPlacement& placement : model.placements()) {
      for (const wan::v1::ModelComponent& component : placement.components()) {
        add_devices(component);
      }
      if (placement.has_error() && !model.has_error()) {
        absl::StrAppend(&errors, Printable(model.name()), " in group ", placement.group(), ": ",
                        FormatError(FromProto(placement.error())), "\n");
      }
    }
    for (const wan::v1::Shape& shape : model.warm_shapes()) {
      shapes.push_back(absl::StrCat(shape.width(), "x", shape.height(), "x", shape.num_frames()));
    }
    for (const wan::v1::Lora& lora : model.loras()) loras.push_back(lora.name());
    loras_text += LoraLines(model);
    recognised += RecognisedLines(model);
    rows.push_back({Printable(model.name()), StateName(model.state()), OrAbsent(model.family()),
                    OrAbsent(model.layout()), bytes > 0 ? FormatBytes(bytes) : kAbsent,
                    OrAbsent(absl::StrJoin(devices, ",")), OrAbsent(absl::StrJoin(dtypes, ",")),
                    OrAbsent(absl::StrJoin(shapes, ",")), OrAbsent(absl::StrJoin(loras, ",")),
                    QualityName(model.defaults()), OrAbsent(model.path())});
    if (model.has_error()) {
      absl::StrAppend(&errors, Printable(model.name()), ": ", FormatError(FromProto(model.error())),
                      "\n");
    }
  }
  return FormatTable({{"Model"},
                      {"State", Align::kLeft, StateColour},
                      {"Family"},
                      {"Layout"},
                      {"Weights", Align::kRight},
                      {"Device"},
                      {"Dtype"},
                      {"Warm shapes"},
                      {"LoRAs"},
                      {"Quality", Align::kLeft, nullptr, kExact},
                      {"Path"}},
                     rows, colours) +
         recognised + widened_text + loras_text + errors;
}

std::string DeviceTable(const wan::v1::WatchDevicesResponse& samples, bool colours) {
  std::vector<std::vector<std::string>> rows;
  for (const wan::v1::DeviceSample& sample : samples.devices()) {
    rows.push_back({Printable(sample.device()), OrAbsent(sample.name()),
                    Figure(sample.has_sm_activity_percent(), sample.sm_activity_percent(), 1),
                    Gibibytes(sample.has_memory_used_bytes(), sample.memory_used_bytes()),
                    Gibibytes(sample.has_memory_total_bytes(), sample.memory_total_bytes()),
                    Gibibytes(sample.has_allocator_bytes(), sample.allocator_bytes()),
                    Figure(sample.has_power_watts(), sample.power_watts(), 0),
                    Figure(sample.has_temperature_celsius(), sample.temperature_celsius(), 0),
                    Figure(sample.has_sm_clock_mhz(), sample.sm_clock_mhz(), 0),
                    Figure(sample.has_cpu_percent(), sample.cpu_percent(), 1),
                    Figure(sample.has_process_cpu_percent(), sample.process_cpu_percent(), 1),
                    Gibibytes(sample.has_process_memory_bytes(), sample.process_memory_bytes()),
                    Figure(sample.has_group(), sample.group(), 0)});
  }
  return FormatTable({{"Device"},
                      {"Name"},
                      {"SM %", Align::kRight},
                      {"Used (GiB)", Align::kRight},
                      {"Total (GiB)", Align::kRight},
                      {"Allocator (GiB)", Align::kRight},
                      {"Power (W)", Align::kRight},
                      {"Temp (C)", Align::kRight},
                      {"SM clock (MHz)", Align::kRight},
                      {"CPU %", Align::kRight},
                      {"Own CPU %", Align::kRight},
                      {"Process (GiB)", Align::kRight},
                      {"Group", Align::kRight, nullptr, kAbsent}},
                     rows, colours);
}

std::string ServerInfoText(const wan::v1::ServerInfo& info) {
  Lines lines;
  lines.Add("Version", Printable(info.version()));
  lines.Add("Started", FormatTime(info.start_time()));
  lines.Add("Devices", Printable(absl::StrJoin(info.devices(), ", ")));
  lines.Add("Dtype", Printable(info.dtype()));
  lines.Add("Jobs", absl::StrCat(info.running_jobs(), " running, ", info.queued_jobs(),
                                 " waiting of at most ", info.queue_capacity()));
  for (const wan::v1::DeviceGroup& group : info.groups()) {
    if (info.groups_size() == 1 && !group.has_error()) break;
    std::string text = absl::StrCat(group.number(), ": ", absl::StrJoin(group.devices(), ","));
    if (group.has_error()) {
      absl::StrAppend(&text, ", has left: ", group.error().message());
    } else {
      absl::StrAppend(&text, group.job().empty() ? ", free" : ", runs ", group.job());
    }
    if (group.resident_models_size() > 0) {
      absl::StrAppend(&text, ", has ", absl::StrJoin(group.resident_models(), ","));
    }
    lines.Add("Group", Printable(text));
  }
  if (info.draining()) lines.Add("Draining", "it accepts no jobs and starts none");
  if (info.not_serving_reasons_size() > 0) {
    lines.Add("Not serving", ReasonsText(info.not_serving_reasons()));
  }
  const std::map<std::string, std::string> libraries(info.libraries().begin(),
                                                     info.libraries().end());
  for (const auto& [name, version] : libraries) {
    lines.Add("Library", Printable(absl::StrCat(name, " ", version)));
  }
  return lines.Take();
}

std::string UsageText(const wan::v1::Usage& usage) {
  const wan::v1::Quota& quota = usage.quota();
  const auto of = [](const std::string& used, bool limited, const std::string& limit) {
    return limited ? absl::StrCat(used, " of at most ", limit) : used;
  };
  Lines lines;
  lines.Add("Principal", usage.principal().empty() ? "everybody" : Printable(usage.principal()));
  lines.Add("Queued", of(absl::StrCat(usage.queued_jobs(), " jobs"), quota.has_queued_jobs(),
                         absl::StrCat(quota.queued_jobs())));
  lines.Add("Running", of(absl::StrCat(usage.running_jobs(), " jobs"), quota.has_running_jobs(),
                          absl::StrCat(quota.running_jobs())));
  lines.Add("Device",
            of(absl::StrFormat("%.1f s in 24 hours and %.1f s to come", usage.device_seconds(),
                               usage.reserved_device_seconds()),
               quota.has_device_seconds(), absl::StrFormat("%.1f s", quota.device_seconds())));
  lines.Add("Stored", of(FormatBytes(usage.stored_bytes()), quota.has_stored_bytes(),
                         FormatBytes(quota.stored_bytes())));
  if (quota.has_calls_per_second()) {
    lines.Add("Calls", absl::StrFormat("at most %g a second", quota.calls_per_second()));
  }
  return lines.Take();
}

std::string DrainText(const wan::v1::DrainResponse& drained) {
  std::string text = "no job was running";
  if (!drained.job().empty()) {
    text = absl::StrCat(Printable(drained.job()), drained.job_ended()
                                                      ? " has ended"
                                                      : " has stopped and goes on after the "
                                                        "server's restart");
  }
  return absl::StrCat(text, "\n", drained.queued_jobs(),
                      drained.queued_jobs() == 1 ? " job waits" : " jobs wait",
                      " for the restart\n");
}

std::string ReasonsText(
    const google::protobuf::RepeatedPtrField<wan::v1::NotServingReason>& reasons) {
  return Printable(absl::StrJoin(reasons, "; ", [](std::string* out, const auto& reason) {
    out->append(reason.message().empty() ? reason.reason() : reason.message());
  }));
}

std::string UndrainText(const wan::v1::UndrainResponse& undrained) {
  const int jobs = undrained.queued_jobs();
  return absl::StrCat("the server accepts and starts jobs again; ", jobs,
                      jobs == 1 ? " job waits\n" : " jobs wait\n");
}

std::string QuoteText(const wan::v1::QuoteResponse& quote) {
  const auto estimate = [](const wan::v1::TimeEstimate& time) {
    return absl::StrCat(FormatClock(time.p50_seconds()), ", 9 of 10 within ",
                        FormatClock(time.p90_seconds()));
  };
  const wan::v1::GenerationRequest& request = quote.request();
  Lines lines;
  lines.Add("Video", absl::StrCat(request.width(), "x", request.height(), ", ",
                                  request.num_frames(), " frames, ", quote.steps(), " steps"));
  lines.AddQuality(request);
  if (quote.eight_bits()) lines.Add("In 8 bits", "products and self-attention of the transformers");
  lines.AddExactBlocks(quote.exact_blocks());
  if (quote.reused_steps_size() > 0) {
    lines.Add("Reused", absl::StrCat("blocks in ", quote.reused_steps_size(), " of ", quote.steps(),
                                     " steps: ", absl::StrJoin(quote.reused_steps(), ", ")));
  }
  lines.Add("Operations", absl::StrFormat("%.4g", quote.flops()));
  if (quote.has_device_memory_bytes()) {
    lines.Add("GPU memory", FormatBytes(quote.device_memory_bytes()));
  }
  if (quote.has_host_memory_bytes()) {
    lines.Add("Host memory", FormatBytes(quote.host_memory_bytes()));
  }
  lines.Add("Jobs ahead", absl::StrCat(quote.jobs_ahead()));
  if (quote.has_queue_time()) lines.Add("Starts in", estimate(quote.queue_time()));
  if (quote.has_warm_time()) lines.Add("Takes", estimate(quote.warm_time()));
  if (quote.has_cold_time()) lines.Add("With loading", estimate(quote.cold_time()));
  return lines.Take();
}

}  // namespace wan::client
