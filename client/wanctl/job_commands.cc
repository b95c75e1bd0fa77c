#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/error.h"
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

// Returns the requests of a command that makes several jobs, without the files that they share.
absl::StatusOr<std::vector<BatchRow>> RowsOf(const SubmitCommand& command, const BatchRow& base) {
  if (!command.from.empty()) return ReadBatch(command.from, base, command.count);
  std::vector<BatchRow> rows;
  for (int32_t i = 0; i < command.count; ++i) {
    rows.push_back({Numbered(base.request, i), base.seconds});
  }
  return rows;
}

// Whether the server refuses a batch, but would take a smaller one.
bool IsTooLarge(const absl::Status& status) {
  const std::vector<FieldViolation> violations = DetailsOf(status).violations;
  return std::any_of(violations.begin(), violations.end(),
                     [](const FieldViolation& one) { return one.field == "requests"; });
}

// Creates the jobs, as many at a time as a call takes, and prints their names in the order of the
// requests.
ExitCode SendAll(Session& session, const std::vector<wan::v1::GenerationRequest>& requests,
                 const SharedFiles& files, const std::string& request_id) {
  size_t most = kMostInBatch;
  for (size_t first = 0; first < requests.size();) {
    const std::span rest(requests.begin() + static_cast<std::ptrdiff_t>(first), requests.end());
    const size_t count = std::min(most, FitIntoBatch(rest, files.bytes()));
    wan::v1::SubmitBatchRequest batch;
    for (const wan::v1::GenerationRequest& request : rest.first(count)) {
      files.AddTo(*batch.add_requests() = request);
    }
    const absl::StatusOr<wan::v1::SubmitBatchResponse> accepted =
        session.OnceReady([&] { return session.Videos().SubmitBatch(batch, session.stop()); });
    if (count > 1 && IsTooLarge(accepted.status())) {
      most = count / 2;
      continue;
    }
    if (!accepted.ok()) {
      const std::string made = first == 0 ? "jobs may have been made"
                                          : absl::StrCat("the first ", first, " of ",
                                                         requests.size(), " requests are jobs");
      const bool refused = ExitCodeOf(accepted.status()) == kExitRejected;
      // --deadline counts from the start of the command, so the requests of a repeated command
      // would have other deadlines and would not match the stored ones.
      const std::string rest =
          requests.front().has_deadline()
              ? "; submit the other rows"
              : absl::StrCat("; the same command with --request-id ", Printable(request_id),
                             " makes only those that are missing");
      return session.Fail(accepted.status(), /*accepted=*/false,
                          first == 0 && refused ? "" : absl::StrCat(made, rest));
    }
    for (const wan::v1::Job& job : accepted->jobs()) {
      session.Show(job, absl::StrCat(Printable(job.name()), "\n"));
    }
    first += count;
  }
  return kExitDone;
}

ExitCode SubmitMany(Session& session, const SubmitCommand& command,
                    wan::v1::GenerationRequest base) {
  // Give every request an ID, so that repeating the command does not create a job twice.
  if (base.request_id().empty()) base.set_request_id(NewRequestId("submit"));
  const SharedFiles files(base);
  absl::StatusOr<std::vector<BatchRow>> rows = RowsOf(command, {base, command.flags.seconds});
  if (!rows.ok()) return session.RefuseUsage(rows.status());
  RequestDefaults defaults(session);
  std::vector<wan::v1::GenerationRequest> requests;
  for (BatchRow& row : *rows) {
    // Fill in each row by itself, because rows may have different models and lengths.
    if (const auto refused = defaults.FillIn(row.seconds, row.request)) return *refused;
    requests.push_back(std::move(row.request));
  }
  return SendAll(session, requests, files, base.request_id());
}

}  // namespace

ExitCode Run(Session& session, const SubmitCommand& command) {
  absl::StatusOr<wan::v1::GenerationRequest> request =
      CompleteRequest(command.flags, session.Now());
  if (!request.ok()) return session.RefuseUsage(request.status());
  if (command.count > 1 || !command.from.empty()) {
    return SubmitMany(session, command, *std::move(request));
  }
  if (const auto refused = RequestDefaults(session).FillIn(command.flags.seconds, *request)) {
    return *refused;
  }
  const absl::StatusOr<wan::v1::Job> job =
      session.OnceReady([&] { return session.Videos().CreateJob(*request, session.stop()); });
  if (!job.ok()) return session.Fail(job.status());
  session.Show(*job, absl::StrCat(Printable(job->name()), "\n"));
  // The answer's request has the seed, which the server has set.
  if (HasOwnSeed(job->request())) SaySeed(session, job->request(), job->name());
  return kExitDone;
}

ExitCode Run(Session& session, const QuoteCommand& command) {
  absl::StatusOr<wan::v1::GenerationRequest> request =
      CompleteRequest(command.flags, session.Now());
  if (!request.ok()) return session.RefuseUsage(request.status());
  if (const auto refused = RequestDefaults(session).FillIn(command.flags.seconds, *request)) {
    return *refused;
  }
  const absl::StatusOr<wan::v1::QuoteResponse> quote =
      session.OnceReady([&] { return session.Videos().Quote(*request, session.stop()); });
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
