#include "client/wanctl/top_view.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/wanctl/listings.h"
#include "client/wanctl/text.h"

namespace wan::client {
namespace {

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) lines.emplace_back(line);
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

// Returns the first line: the server, the time, and the length of the queue.
std::string Heading(const TopState& state) {
  const wan::v1::ServerInfo& info = state.info;
  std::string text = absl::StrCat(
      "wanserve ", Printable(info.version()), " at ", Printable(state.server), "  ",
      absl::FormatTime("%H:%M:%S", state.time, absl::UTCTimeZone()), "Z  ", info.running_jobs(),
      " running, ", info.queued_jobs(), " waiting of at most ", info.queue_capacity());
  if (info.draining()) text += ", draining";
  return text;
}

}  // namespace

void SortForTop(std::vector<wan::v1::Job>& jobs) {
  const auto place = [](const wan::v1::Job& job) {
    return std::tuple(job.state() != wan::v1::JOB_STATE_RUNNING, job.queue_position());
  };
  std::stable_sort(jobs.begin(), jobs.end(), [&](const wan::v1::Job& a, const wan::v1::Job& b) {
    return place(a) < place(b);
  });
}

std::string RenderTop(const TopState& state, Screen::Size size, bool colours) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& line, Colour colour = Colour::kNone) {
    // Add the colour codes after cutting the line, because the codes take no columns.
    const std::string cut = size.columns > 0 ? CutToWidth(line, size.columns) : line;
    lines.push_back(colours ? Coloured(cut, colour) : cut);
  };
  add(Heading(state), Colour::kBold);
  add(state.problem.empty() ? "" : absl::StrCat("wanctl: ", state.problem), Colour::kRed);
  if (state.info.not_serving_reasons_size() > 0) {
    add(absl::StrCat("NOT_SERVING: ", ReasonsText(state.info.not_serving_reasons())), Colour::kRed);
  }
  const std::vector<std::string> devices = LinesOf(DeviceTable(state.devices));
  for (size_t i = 0; i < devices.size(); ++i)
    add(devices[i], i == 0 ? Colour::kBold : Colour::kNone);
  add("");
  const std::vector<std::string> jobs = LinesOf(JobTable(state.jobs));
  add(jobs[0], Colour::kBold);
  for (size_t i = 0; i < state.jobs.size(); ++i) {
    const bool running = state.jobs[i].state() == wan::v1::JOB_STATE_RUNNING;
    add(jobs[i + 1], running ? Colour::kGreen : Colour::kNone);
  }
  if (size.rows <= 0) return absl::StrJoin(lines, "\n");

  const size_t rows = static_cast<size_t>(size.rows);
  const std::string help = "q quits";
  std::string last = help;
  if (lines.size() + 1 > rows) {
    // The last line shows the help, so one more job is hidden than there are lines too few.
    const size_t hidden = std::min(lines.size() + 1 - rows, state.jobs.size());
    lines.resize(rows > 0 ? rows - 1 : 0);
    last = absl::StrCat(hidden, hidden == 1 ? " more job; " : " more jobs; ", help);
  }
  lines.resize(rows - 1);
  add(last);
  return absl::StrJoin(lines, "\n");
}

}  // namespace wan::client
