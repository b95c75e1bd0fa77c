// Registers the commands report and bench.
#include <set>
#include <string>
#include <utility>

#include "client/reports/run.h"
#include "client/wanctl/command_registry.h"
#include "client/wanctl/report_files.h"

namespace wan::client {
namespace {

constexpr char kReportFooter[] =
    R"(Formats: table (a line for each stage), text, markdown, json, html (one file with charts, which loads
nothing). Without --format the ending of --output decides (.txt, .md, .json, .html), otherwise it is table.

Examples:
  wanctl report 4f1c9a52d07be6831a2c
  wanctl report 4f1c9a52d07be6831a2c 88d1c07be6831a2c4f1c --format markdown
  wanctl report 4f1c9a52d07be6831a2c --output report.html --ceilings h200.json
  wanctl report --from bench/report.json --part bottlenecks --format text
  wanctl report --from bench/report.json --ceilings h200.json --output again/)";

constexpr char kBenchFooter[] =
    R"(CASES is 'demo' (the demo model on a CPU), 'seeds' (TI2V-5B and A14B at the sizes of published reports),
or a YAML file; docs/use/reports.md has its form. DIR gets report.json, report.md, report.html and the plots.
The exit code is 0 only if every case ran.

Examples:
  wanctl bench demo --output bench --mode both
  wanctl bench seeds --only 01_Speed_Preview_704p --num-runs 3 --warm-up 1 --output bench
  wanctl bench cases.yaml --compare 'text encoder on the CPU=localhost:50052' --output bench)";

absl::StatusOr<reports::ReportPart> ParsePart(std::string_view text) {
  if (text == "benchmark") return reports::ReportPart::kBenchmark;
  if (text == "performance") return reports::ReportPart::kPerformance;
  if (text == "bottlenecks") return reports::ReportPart::kBottlenecks;
  if (text == "options") return reports::ReportPart::kOptions;
  return absl::InvalidArgumentError(
      "expects one of benchmark, performance, bottlenecks, options, not '" + std::string(text) +
      "'");
}

absl::StatusOr<BenchMode> ParseMode(std::string_view text) {
  if (text == "optimized") return BenchMode::kOptimized;
  if (text == "original") return BenchMode::kOriginal;
  if (text == "both") return BenchMode::kBoth;
  return absl::InvalidArgumentError("expects one of original, optimized, both, not '" +
                                    std::string(text) + "'");
}

constexpr char kCeilingsHelp[] =
    "File of 'wan_bench ceilings' from the same card, for the bottleneck analysis (default: the "
    "stored one of that card)";

void AddReport(CommandRegistry& registry) {
  CommandHelp help{"report", "Show where a job's time and memory go, and what would save time",
                   kReportFooter};
  help.own_format = true;
  const auto added = registry.Add<ReportCommand>(help, [](ReportCommand& command) {
    if (command.jobs.empty() && command.from.empty()) throw CLI::RequiredError("JOB");
    if (IsFolder(command.flags.output) && command.flags.format.has_value()) {
      throw CLI::ValidationError("--output " + command.flags.output +
                                 " is a folder, which gets every format; --format is for a file");
    }
  });
  ReportCommand& report = added.command;
  Several(AddValue<std::string>(added.app, "JOB", "", "jobs/ID, or ID alone, or last", ParseJobName,
                                [&](std::string job) { report.jobs.push_back(std::move(job)); }));
  AddValue<ReportFormat>(added.app, "--format", "table|text|markdown|json|html",
                         "Format of the report (default: table)", ParseReportFormat,
                         [&](ReportFormat format) { report.flags.format = format; });
  AddValue<std::string>(
      added.app, "--output", "FILE|DIR/",
      "File to write instead of stdout, or a folder for every format and the plots", ParseNotEmpty,
      report.flags.output);
  Repeatable(AddValue<reports::ReportPart>(
      added.app, "--part", "benchmark|performance|bottlenecks|options",
      "Make only this one of the four reports; repeatable", ParsePart,
      [&](reports::ReportPart part) { report.flags.parts.insert(part); }));
  AddValue<std::string>(added.app, "--ceilings", "FILE", kCeilingsHelp, ParseNotEmpty,
                        report.flags.ceilings);
  Repeatable(AddValue<std::string>(
      added.app, "--from", "FILE", "A report.json whose runs are added to the report; repeatable",
      ParseNotEmpty, [&](std::string file) { report.from.push_back(std::move(file)); }));
}

// Throws CLI::ValidationError if the command line names a server that would not be used, or if two
// options have the same name.
void CheckServers(const BenchCommand& command) {
  if (!command.original_server.empty() && command.mode == BenchMode::kOptimized) {
    throw CLI::ValidationError(
        "--original-server needs --mode original or both, which run upstream's settings");
  }
  if (!command.compare.empty() && command.mode == BenchMode::kOriginal) {
    throw CLI::ValidationError(
        "--compare needs --mode optimized or both, which run the cases' own settings");
  }
  std::set<std::string> names = {reports::kOriginalVariant};
  for (const auto& [name, server] : command.compare) {
    if (names.insert(name).second) continue;
    throw CLI::ValidationError(
        name == reports::kOriginalVariant
            ? "--compare cannot name an option 'original': that is --original-server's name"
            : "--compare gives '" + name + "' twice; every option needs a name of its own");
  }
}

void AddBench(CommandRegistry& registry) {
  const auto added = registry.Add<BenchCommand>(
      {"bench", "Run cases one after the other and write the four reports", kBenchFooter},
      [](BenchCommand& command) { CheckServers(command); });
  BenchCommand& bench = added.command;
  AddValue<std::string>(added.app, "CASES", "", "demo, seeds, or a YAML file", ParseNotEmpty,
                        bench.cases)
      ->required();
  AddValue<std::string>(added.app, "--output", "DIR",
                        "Folder for the reports; it is created if needed", ParseNotEmpty,
                        bench.output)
      ->required();
  AddValue<BenchMode>(added.app, "--mode", "original|optimized|both",
                      "Upstream's settings, the cases' own (default), or each case with both",
                      ParseMode, bench.mode);
  AddValue<int32_t>(added.app, "--num-runs", "N", "Runs of each case (default: 1)", ParseCount,
                    bench.num_runs);
  AddValue<int32_t>(added.app, "--warm-up", "N",
                    "Number of runs before the measured ones, which do not count (default: 0)",
                    ParseCountOrZero, bench.warm_up);
  Repeatable(AddValue<std::string>(
      added.app, "--only", "CASE", "Run only this case; repeatable", ParseNotEmpty,
      [&](std::string name) { bench.only.push_back(std::move(name)); }));
  AddValue<std::string>(added.app, "--model", "NAME", "Model instead of the cases' own",
                        ParseNotEmpty, bench.model);
  AddValue<std::string>(added.app, "--original-server", "HOST:PORT",
                        "Server with upstream's settings (default: the same server)", ParseServer,
                        bench.original_server);
  Repeatable(AddValue<std::pair<std::string, std::string>>(
      added.app, "--compare", "NAME=HOST:PORT",
      "Also run each case on this server, whose settings differ by the option NAME; repeatable",
      ParseNamedServer, [&](std::pair<std::string, std::string> option) {
        bench.compare.push_back(std::move(option));
      }));
  Repeatable(AddValue<std::pair<std::string, std::string>>(
      added.app, "--label", "KEY=VALUE", "Label of the jobs; repeatable", ParseLabel,
      [&](std::pair<std::string, std::string> label) {
        bench.labels.push_back(std::move(label));
      }));
  AddValue<std::string>(added.app, "--ceilings", "FILE", kCeilingsHelp, ParseNotEmpty,
                        bench.ceilings);
}

}  // namespace

void RegisterReportCommands(CommandRegistry& registry) {
  AddReport(registry);
  AddBench(registry);
}

}  // namespace wan::client
