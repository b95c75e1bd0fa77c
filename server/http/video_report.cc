#include "server/http/video_report.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/reports/render.h"
#include "client/reports/report.h"
#include "server/http/video_query.h"

namespace wan::server {
namespace {

using client::reports::Document;
using client::reports::Run;

struct Rendered {
  const char* content_type;
  std::string text;
};

Rendered Render(ReportFormat format, const Document& document, const std::vector<Run>& runs) {
  switch (format) {
    case ReportFormat::kText:
      return {"text/plain; charset=utf-8", client::reports::RenderText(document)};
    case ReportFormat::kMarkdown:
      return {"text/markdown; charset=utf-8", client::reports::RenderMarkdown(document)};
    case ReportFormat::kJson:
      return {"application/json", client::reports::RenderJson(document, runs)};
    case ReportFormat::kHtml:
      break;
  }
  return {"text/html; charset=utf-8", client::reports::RenderHtml(document)};
}

}  // namespace

HttpAnswer VideoReport(const VideoExchange& exchange, const JobService& jobs) {
  const absl::StatusOr<ReportFormat> format = ParseReportQuery(exchange.head.query);
  if (!format.ok()) return exchange.Failed(format.status());
  absl::StatusOr<wan::v1::JobReport> report = jobs.Report(exchange.job);
  if (!report.ok()) return exchange.Failed(report.status());
  const std::vector<Run> runs = {client::reports::RunOf(*std::move(report))};
  Rendered rendered = Render(*format, client::reports::BuildReport(runs, {}), runs);
  exchange.call->End(absl::OkStatus()).IgnoreError();
  HttpAnswer answer;
  answer.fields = {{"Content-Type", rendered.content_type},
                   {"Cache-Control", "no-cache"},
                   // Content-Security-Policy for the report, which has inline styles and pictures
                   // but no scripts.
                   {"Content-Security-Policy",
                    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
                    "frame-ancestors 'self'; sandbox"},
                   {"X-Content-Type-Options", "nosniff"},
                   {"Referrer-Policy", "no-referrer"}};
  answer.body = std::move(rendered.text);
  return answer;
}

}  // namespace wan::server
