#include "server/process/repair_command.h"

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/store/repair.h"

namespace wan::server {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kWithLosses = 3;

}  // namespace

bool IsRepairCommand(int argc, const char* const* argv) {
  return argc > 1 && std::string_view(argv[1]) == "repair";
}

int RunRepairCommand(int argc, const char* const* argv, const Clock& clock, std::ostream& out,
                     std::ostream& err) {
  CLI::App app("wanserve repair: makes a sound job database of what can be read of a damaged one",
               "wanserve repair");
  app.set_help_flag("--help,-h", "print this and exit");
  std::string data_dir;
  app.add_option("--data-dir", data_dir, "folder of jobs and videos; no server may use it")
      ->type_name("DIR")
      ->required();
  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::CallForHelp&) {
    out << app.help();
    return kDone;
  } catch (const CLI::ParseError& error) {
    err << "wanserve repair: " << error.what() << " (see wanserve repair --help)\n";
    return kUsage;
  }
  const absl::StatusOr<RepairResult> result = RepairDatabase(data_dir, clock.Now());
  if (!result.ok()) {
    err << "wanserve repair: " << std::string(result.status().message()) << '\n';
    return kFailed;
  }
  if (result->was_whole) {
    out << "the database is whole; nothing was changed\n";
    return kDone;
  }
  out << "repaired: " << result->jobs << " jobs with " << result->events << " events\n"
      << "the damaged file is kept as " << result->kept.string() << '\n';
  for (const std::string& loss : result->losses) out << "lost: " << loss << '\n';
  for (const std::string& folder : result->unknown_files) {
    out << "files without a job: " << folder << '\n';
  }
  return result->losses.empty() ? kDone : kWithLosses;
}

}  // namespace wan::server
