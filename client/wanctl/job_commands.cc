#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/video_client.h"
#include "client/wanctl/batch.h"
#include "client/wanctl/commands.h"
#include "client/wanctl/defaults.h"
#include "client/wanctl/listings.h"
#include "client/wanctl/outputs.h"
#include "client/wanctl/request.h"
#include "client/wanctl/text.h"

namespace wan::client {
namespace {

// Creates the jobs, kMostInBatch at a time, and prints their names in the order of the requests.
ExitCode SubmitMany(Session& session, const SubmitCommand& command,
                    const wan::v1::GenerationRequest& base) {
  std::vector<wan::v1::GenerationRequest> requests;
  if (command.from.empty()) {
    for (int32_t i = 0; i < command.count; ++i) requests.push_back(Numbered(base, i));
  } else {
    absl::StatusOr<std::vector<wan::v1::GenerationRequest>> read =
        ReadBatch(command.from, base, command.count);
    if (!read.ok()) return session.RefuseUsage(read.status());
    requests = *std::move(read);
  }
  for (size_t first = 0; first < requests.size(); first += kMostInBatch) {
    const size_t end = std::min(requests.size(), first + kMostInBatch);
    wan::v1::SubmitBatchRequest batch;
    for (size_t i = first; i < end; ++i) *batch.add_requests() = std::move(requests[i]);
    const absl::StatusOr<wan::v1::SubmitBatchResponse> accepted =
        session.OnceLoaded([&] { return session.Videos().SubmitBatch(batch, session.stop()); });
    if (!accepted.ok()) {
      return session.Fail(
          accepted.status(), /*accepted=*/false,
          first == 0 ? ""
                     : absl::StrCat("the first ", first, " requests are jobs, the others are not"));
    }
    for (const wan::v1::Job& job : accepted->jobs()) {
      session.Show(job, absl::StrCat(Printable(job.name()), "\n"));
    }
  }
  return kExitDone;
}

}  // namespace

ExitCode Run(Session& session, const SubmitCommand& command) {
  absl::StatusOr<wan::v1::GenerationRequest> request =
      CompleteRequest(command.flags, session.Now());
  if (!request.ok()) return session.RefuseUsage(request.status());
  if (const auto refused = FillInDefaults(session, command.flags, *request)) return *refused;
  if (command.count > 1 || !command.from.empty()) return SubmitMany(session, command, *request);
  const absl::StatusOr<wan::v1::Job> job =
      session.OnceLoaded([&] { return session.Videos().CreateJob(*request, session.stop()); });
  if (!job.ok()) return session.Fail(job.status());
  session.Show(*job, absl::StrCat(Printable(job->name()), "\n"));
  // Use the request that the answer contains, because the server has set the seed there.
  if (HasOwnSeed(job->request())) SaySeed(session, job->request(), job->name());
  return kExitDone;
}

ExitCode Run(Session& session, const QuoteCommand& command) {
  absl::StatusOr<wan::v1::GenerationRequest> request =
      CompleteRequest(command.flags, session.Now());
  if (!request.ok()) return session.RefuseUsage(request.status());
  if (const auto refused = FillInDefaults(session, command.flags, *request)) return *refused;
  const absl::StatusOr<wan::v1::QuoteResponse> quote =
      session.OnceLoaded([&] { return session.Videos().Quote(*request, session.stop()); });
  if (!quote.ok()) return session.Fail(quote.status());
  session.Show(*quote, QuoteText(*quote));
  return kExitDone;
}

ExitCode Run(Session& session, const GetCommand& command) {
  const absl::StatusOr<wan::v1::Job> job = session.Videos().GetJob(command.job, session.stop());
  if (!job.ok()) return session.Fail(job.status());
  session.Show(*job, JobText(*job));
  return kExitDone;
}

ExitCode Run(Session& session, const ListCommand& command) {
  // The largest page that the server returns.
  constexpr int kPageSize = 1000;
  wan::v1::ListJobsRequest request;
  request.mutable_states()->Add(command.states.begin(), command.states.end());
  request.set_filter(command.filter);
  request.set_order_by(command.order_by);
  std::vector<wan::v1::Job> jobs;
  do {
    request.set_page_size(std::min<int>(command.limit - static_cast<int>(jobs.size()), kPageSize));
    const absl::StatusOr<wan::v1::ListJobsResponse> page =
        session.Videos().ListJobs(request, session.stop());
    if (!page.ok()) return session.Fail(page.status());
    session.Show(*page, "");
    jobs.insert(jobs.end(), page->jobs().begin(), page->jobs().end());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty() && jobs.size() < static_cast<size_t>(command.limit));
  // Print one table for all pages, because the widths of its columns depend on all jobs.
  if (!session.json()) session.console().out << JobTable(jobs, session.out_colours());
  return kExitDone;
}

ExitCode Run(Session& session, const CancelCommand& command) {
  const absl::StatusOr<wan::v1::Job> job = session.Videos().CancelJob(command.job, session.stop());
  if (!job.ok()) return session.Fail(job.status());
  session.Show(*job, JobText(*job));
  return kExitDone;
}

ExitCode Run(Session& session, const DeleteCommand& command) {
  const absl::Status status = session.Videos().DeleteJob(command.job, session.stop());
  return status.ok() ? kExitDone : session.Fail(status);
}

ExitCode Run(Session& session, const DownloadCommand& command) {
  if (const absl::Status status = CheckOutputs(command.outputs); !status.ok()) {
    return session.RefuseUsage(status);
  }
  const absl::StatusOr<wan::v1::Job> job = session.Videos().GetJob(command.job, session.stop());
  if (!job.ok()) return session.Fail(job.status());
  std::vector<OutputFile> outputs = command.outputs;
  if (outputs.empty()) {
    for (const wan::v1::Artifact& artifact : job->artifacts()) {
      outputs.push_back(DefaultOutput(job->request().prompt(), job->name(), artifact.kind()));
    }
    if (outputs.empty()) {
      session.Say(absl::StrCat(Printable(job->name()), " has no files; 'wanctl get ",
                               Printable(job->name()), "' shows why"));
      return kExitRejected;
    }
    if (const absl::Status status = CheckOutputs(outputs); !status.ok()) {
      return session.RefuseUsage(status);
    }
  }
  session.Show(*job, "");
  Display display(session.console().err, session.console().err_columns);
  return FetchOutputs(session, display, job->name(), job->artifacts(), outputs, kExitRejected);
}

ExitCode Run(Session& session, const ReceiptCommand& command) {
  const absl::StatusOr<wan::v1::Receipt> receipt =
      session.Videos().GetReceipt(command.job, session.stop());
  if (!receipt.ok()) return session.Fail(receipt.status());
  session.Show(*receipt, ReceiptText(*receipt));
  return kExitDone;
}

}  // namespace wan::client
