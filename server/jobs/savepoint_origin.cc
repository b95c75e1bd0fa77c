#include "server/jobs/savepoint_origin.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/jobs/receipts.h"
#include "server/store/digest.h"

namespace wan::server {
namespace {

using google::protobuf::util::MessageDifferencer;

using Names = std::set<std::string, std::less<>>;

Names LorasOf(const wan::v1::Job& job) {
  Names names;
  for (const wan::v1::LoraScale& lora : job.request().loras()) names.insert(lora.name());
  return names;
}

// Returns the name of the LoRA to which a file belongs ("loras/NAME/..."); empty for a file of the
// checkpoint.
std::string_view LoraOf(std::string_view file) {
  constexpr std::string_view kFolder = "loras/";
  if (!file.starts_with(kFolder)) return {};
  file.remove_prefix(kFolder.size());
  return file.substr(0, file.find('/'));
}

bool Uses(const wan::v1::Job& job, FileUse use) {
  const wan::v1::GenerationRequest& request = job.request();
  const auto is_decoded = [](int kind) { return kind != wan::v1::OUTPUT_KIND_LATENTS; };
  const bool decodes = std::any_of(request.outputs().begin(), request.outputs().end(), is_decoded);
  const bool tiny = request.decoder() == wan::v1::DECODER_TINY;
  switch (use) {
    case FileUse::kEveryJob:
      return true;
    case FileUse::kVae:
      return !job.image_sha256().empty() || (decodes && !tiny);
    case FileUse::kTinyDecoder:
      return decodes && tiny;
    case FileUse::kStepRatios:
      return request.quality() == wan::v1::QUALITY_FAST;
  }
  return true;
}

// Hashes each part with its length, so that different lists of parts never give the same digest.
class PartsDigest {
 public:
  void Add(std::string_view part) {
    hash_.Update(absl::StrCat(part.size(), ":"));
    hash_.Update(part);
  }
  std::string FinishHex() { return hash_.FinishHex(); }

 private:
  Sha256 hash_;
};

// Returns the SHA-256 of what the caller asked for, of how the model is read, and of the steps that
// follow from both.
std::string RequestDigest(const wan::v1::Job& job, const Computation& computation,
                          const ModelDescription& model) {
  // Leave out the fields that may change while the job waits, and those that do not affect the
  // video's latents.
  wan::v1::GenerationRequest request = job.request();
  request.clear_request_id();
  request.clear_webhook_url();
  request.clear_labels();
  request.clear_priority();
  request.clear_deadline();
  request.clear_outputs();
  request.clear_preview_interval();
  request.clear_profile();
  request.clear_fps();
  request.clear_progressive();
  request.clear_resume();
  PartsDigest digest;
  digest.Add(request.SerializeAsString());
  digest.Add(job.image_sha256());
  digest.Add(model.layout);
  digest.Add(computation.schedule);
  const bool uses_cpu = !computation.provenance.cpu_components().empty();
  digest.Add(uses_cpu ? computation.cpu_name : "");
  // The weights of a synthetic model follow from its path.
  const bool has_files =
      std::any_of(model.files.begin(), model.files.end(),
                  [](const ModelFile& file) { return LoraOf(file.name).empty(); });
  if (!has_files) digest.Add(model.path);
  const Names used = LorasOf(job);
  for (const LoraDescription& lora : model.loras) {
    if (!used.contains(lora.name)) continue;
    for (const LoraPartDescription& part : lora.parts) {
      // Include the factor, because another version of the server may read another factor from the
      // same file.
      digest.Add(absl::StrCat(part.min_factor.value_or(1), " ", part.max_factor.value_or(1)));
    }
  }
  return digest.FinishHex();
}

// Returns how two provenances differ, for example 'modified: libraries: "LibTorch 2.10.0" ->
// "LibTorch 2.11.0"'; empty if they do not.
std::string Differences(const wan::v1::Provenance& kept, const wan::v1::Provenance& now) {
  std::string text;
  MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&text);
  if (differencer.Compare(kept, now)) return "";
  absl::StripAsciiWhitespace(&text);
  return absl::StrReplaceAll(text, {{"\n", "; "}});
}

absl::Status OthersError(std::string_view file, std::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(
      "was made while the model's files, or those of its LoRAs, were others: ", std::string(file),
      " ", std::string(why)));
}

absl::Status CheckFile(const JobFile& kept, const JobFile& now, const ModelFile& file,
                       FileDigests& digests, const std::stop_token& stop) {
  if (kept.name != now.name) return OthersError(kept.name, "is not among them now");
  if (kept.digest_key == now.digest_key) return absl::OkStatus();
  if (kept.size_bytes != now.size_bytes) return OthersError(kept.name, "has another size");
  const std::optional<std::string> before =
      kept.sha256.empty() ? digests.Find(kept.digest_key) : kept.sha256;
  if (!before.has_value()) {
    return OthersError(kept.name, "was replaced before its SHA-256 was known");
  }
  const absl::StatusOr<std::string> after = digests.Learn(file, stop);
  if (absl::IsCancelled(after.status())) return after.status();
  if (!after.ok()) return OthersError(kept.name, std::string(after.status().message()));
  return *before == *after ? absl::OkStatus() : OthersError(kept.name, "has another SHA-256");
}

}  // namespace

std::vector<ModelFile> FilesUsedBy(const wan::v1::Job& job, const ModelDescription& model) {
  const Names loras = LorasOf(job);
  std::vector<ModelFile> files;
  for (const ModelFile& file : model.files) {
    const std::string_view lora = LoraOf(file.name);
    if (lora.empty() ? Uses(job, file.use) : loras.contains(lora)) files.push_back(file);
  }
  return files;
}

wan::v1::Provenance LatentsProvenance(wan::v1::Provenance provenance) {
  provenance.clear_server_version();
  provenance.clear_decode_tile_rows();
  provenance.clear_decode_tile_columns();
  return provenance;
}

std::string ScheduleDigest(const GenerationPlan& plan) {
  PartsDigest digest;
  digest.Add(absl::StrCat(plan.first_step, " ", plan.guided, " ", plan.sigmas.size()));
  for (const float sigma : plan.sigmas) digest.Add(absl::StrCat(std::bit_cast<uint32_t>(sigma)));
  for (const StepPlan& step : plan.steps) {
    digest.Add(absl::StrCat(std::bit_cast<uint64_t>(step.timestep), " ",
                            static_cast<int>(step.expert), " ",
                            std::bit_cast<uint64_t>(step.guidance_scale), " ", step.reuses_blocks));
  }
  return digest.FinishHex();
}

SavepointOrigin OriginOf(const wan::v1::Job& job, const Computation& computation,
                         const ModelDescription& model, const FileDigests& digests) {
  return {RequestDigest(job, computation, model), LatentsProvenance(computation.provenance),
          JobFilesOf(FilesUsedBy(job, model), digests)};
}

absl::Status CheckOrigin(const SavepointOrigin& kept, const SavepointOrigin& now,
                         const std::vector<ModelFile>& files, FileDigests& digests,
                         const std::stop_token& stop) {
  if (const std::string how = Differences(kept.provenance, now.provenance); !how.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("was made by another device, library or compute revision (", how, ")"));
  }
  if (kept.request != now.request) {
    return absl::FailedPreconditionError(
        "was made from another request, on another CPU or for another schedule of steps");
  }
  if (kept.files.size() != now.files.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "was made while the model's files, or those of its LoRAs, were others: it had ",
        kept.files.size(), " of them, and has ", now.files.size(), " now"));
  }
  for (size_t i = 0; i < files.size(); ++i) {
    absl::Status same = CheckFile(kept.files[i], now.files[i], files[i], digests, stop);
    if (!same.ok()) return same;
  }
  return absl::OkStatus();
}

}  // namespace wan::server
