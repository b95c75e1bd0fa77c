#include "server/jobs/queue_estimates.h"

#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/conversion/convert.h"
#include "server/conversion/job_inputs.h"
#include "server/conversion/names.h"
#include "server/jobs/engine_call.h"
#include "server/store/durable_file.h"

namespace wan::server {
namespace {

// Maximum number of jobs that are taken from JobOrder at once.
constexpr size_t kJobsAtOnce = 64;
constexpr absl::Duration kKeepEvery = absl::Minutes(1);

// Returns a key that is equal for jobs with the same work; texts, seed and the values of latents do
// not change the work.
std::string WorkKeyOf(const wan::v1::Job& job) {
  wan::v1::GenerationRequest request = job.request();
  request.clear_prompt();
  request.clear_negative_prompt();
  request.clear_seed();
  request.clear_labels();
  request.clear_request_id();
  request.clear_webhook_url();
  request.clear_deadline();
  request.clear_priority();
  request.clear_resume();
  if (request.has_initial_latents()) request.mutable_initial_latents()->Clear();
  if (request.has_latents()) request.mutable_latents()->Clear();
  return absl::StrCat(job.image_sha256().empty() ? "text " : "image ", request.SerializeAsString());
}

}  // namespace

void QueueEstimates::Start(Parts parts) {
  parts_ = std::move(parts);
  std::ifstream file(parts_.file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string head = absl::StrCat(parts_.device, "\n");
  if (!text.starts_with(head)) return;
  parts_.estimator->TakeOver(std::string_view(text).substr(head.size()));
  written_ = parts_.estimator->Learned();
}

void QueueEstimates::OnModelState(const wan::v1::Model& model) {
  if (parts_.groups == nullptr || model.state() != wan::v1::MODEL_STATE_READY) return;
  const std::string name(BareModelName(model.name()));
  parts_.groups->Post({[this, name] { PlanJobsOf(name); }, [] {}});
}

void QueueEstimates::PlanJobsOf(const std::string& model) const {
  const std::vector<int> groups = parts_.models->ReadyIn(model);
  if (groups.empty()) return;  // no group: the model was unloaded meanwhile
  Engine& engine = parts_.groups->engine(groups.front());
  std::map<std::string, std::shared_ptr<const PlannedWork>> known;
  for (;;) {
    const std::vector<wan::v1::Job> jobs = parts_.order->TakeUnplanned(model, kJobsAtOnce);
    if (jobs.empty()) return;
    for (const wan::v1::Job& job : jobs) {
      std::shared_ptr<const PlannedWork>& work = known[WorkKeyOf(job)];
      if (work == nullptr) {
        absl::StatusOr<JobInputs> inputs = parts_.store->Inputs(job.name());
        // Skip the job: its attempt will report the error.
        if (!inputs.ok() || !parts_.input_links->Complete(job, *inputs).ok() ||
            !MissingInput(job, *inputs).empty()) {
          continue;
        }
        const GenerationRequest request = RequestOf(job, *std::move(inputs));
        const absl::StatusOr<GenerationPlan> plan =
            CallEngine([&] { return engine.Plan(request); });
        if (!plan.ok()) continue;  // skip the job: its attempt will report the error
        work = std::make_shared<const PlannedWork>(plan->stages);
      }
      parts_.order->SetWork(job.name(), work);
    }
  }
}

void QueueEstimates::OnJobEndStored() {
  if (parts_.estimator == nullptr) return;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = parts_.clock->Steady().Now();
    if (now - kept_at_ < kKeepEvery) return;
    kept_at_ = now;
  }
  Keep();
}

void QueueEstimates::Keep() {
  writer_->Post([this] { Write(); });
}

void QueueEstimates::Finish() {
  Keep();
  writer_.reset();
}

void QueueEstimates::Write() {
  if (parts_.estimator == nullptr) return;
  const std::string rates = parts_.estimator->Learned();
  if (rates == written_) return;
  if (ReplaceFile(parts_.file, absl::StrCat(parts_.device, "\n"), rates).ok()) written_ = rates;
}

}  // namespace wan::server
