#include "server/jobs/job_savepoints.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/digest.h"
#include "server/store/file_digests.h"

namespace wan::server {
namespace {

// Returns the name of the LoRA to which a file belongs ("loras/NAME/..."); empty for a file of the
// checkpoint.
std::string_view LoraOf(const ModelFile& file) {
  constexpr std::string_view kFolder = "loras/";
  std::string_view name = file.name;
  if (!name.starts_with(kFolder)) return {};
  name.remove_prefix(kFolder.size());
  return name.substr(0, name.find('/'));
}

}  // namespace

std::string SavepointIdentity(const wan::v1::Job& job, const wan::v1::Provenance& provenance,
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
  wan::v1::Provenance makers = provenance;
  makers.clear_decode_tile_rows();
  makers.clear_decode_tile_columns();
  Sha256 hash;
  // Hash each part with its length, so that different lists of parts never give the same bytes.
  const auto add = [&hash](std::string_view part) {
    hash.Update(absl::StrCat(part.size(), ":"));
    hash.Update(part);
  };
  add(request.SerializeAsString());
  add(job.image_sha256());
  add(makers.SerializeAsString());
  add(model.path);
  add(model.layout);
  // Only the LoRAs of the job count: others may come and go while it waits.
  std::set<std::string, std::less<>> used;
  for (const wan::v1::LoraScale& lora : job.request().loras()) used.insert(lora.name());
  for (const LoraDescription& lora : model.loras) {
    if (!used.contains(lora.name)) continue;
    for (const LoraPartDescription& part : lora.parts) {
      add(part.path);
      // Include the factor, because another version of the server may read another factor from the
      // same file.
      add(absl::StrCat(part.min_factor.value_or(1), " ", part.max_factor.value_or(1)));
    }
  }
  Sha256 files;
  for (const ModelFile& file : model.files) {
    const std::string_view lora = LoraOf(file);
    if (lora.empty() || used.contains(lora)) files.Update(FileDigests::KeyOf(file));
  }
  return absl::StrCat(hash.FinishHex(), ".", files.FinishHex());
}

JobSavepoints::JobSavepoints(Parts parts)
    : parts_(std::move(parts)), last_nanos_(parts_.clock.MonotonicNanos()) {}

JobSavepoints::~JobSavepoints() {
  {
    absl::MutexLock lock(&mutex_);
    end_ = true;
  }
  if (writer_.joinable()) writer_.join();
}

std::optional<Savepoint> JobSavepoints::Load() {
  absl::StatusOr<Savepoint> savepoint = parts_.store.Read(parts_.job, parts_.identity);
  if (savepoint.ok()) return *std::move(savepoint);
  if (!absl::IsNotFound(savepoint.status())) Refuse(std::string(savepoint.status().message()));
  return std::nullopt;
}

bool JobSavepoints::IsDue(bool last_step) {
  const absl::Duration work = absl::Nanoseconds(parts_.clock.MonotonicNanos() - last_nanos_);
  return work >= (last_step ? std::min(parts_.interval, kWorkWorthKeeping) : parts_.interval);
}

bool JobSavepoints::WantsWhenStopped() { return parts_.will_run_again(); }

void JobSavepoints::Keep(Savepoint savepoint) {
  last_nanos_ = parts_.clock.MonotonicNanos();
  absl::MutexLock lock(&mutex_);
  waiting_ = std::move(savepoint);
  if (!writer_.joinable()) writer_ = std::thread([this] { Loop(); });
}

void JobSavepoints::Refuse(const std::string& reason) {
  parts_.on_problem(absl::DataLossError(
      absl::StrCat(parts_.job, " begins at its start, not at its savepoint: ", reason)));
}

void JobSavepoints::Loop() {
  for (;;) {
    Savepoint savepoint;
    {
      absl::MutexLock lock(&mutex_);
      const auto wake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return waiting_.has_value() || end_;
      };
      mutex_.Await(absl::Condition(&wake));
      if (!waiting_.has_value()) return;
      savepoint = *std::move(waiting_);
      waiting_.reset();
    }
    const int64_t begin = parts_.clock.MonotonicNanos();
    const absl::Status written = parts_.store.Write(parts_.job, parts_.identity, savepoint);
    if (written.ok()) {
      const auto nanos = static_cast<double>(parts_.clock.MonotonicNanos() - begin);
      parts_.on_written(savepoint.steps_done, nanos * 1e-9);
    } else {
      parts_.on_problem(absl::Status(written.code(),
                                     absl::StrCat("no savepoint of ", parts_.job, " behind step ",
                                                  savepoint.steps_done, ": ", written.message())));
    }
  }
}

}  // namespace wan::server
