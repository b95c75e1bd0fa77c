// Measures the highest rates of a device; the rows of all other commands are compared with them.
//
//   wan_bench ceilings --device cuda:0
//   wan_bench ceilings --device cpu --output ceilings.json
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/bench_flags.h"
#include "benchmarks/commands.h"
#include "benchmarks/measure_ceilings.h"
#include "client/reports/ceilings_folder.h"

namespace wan {
namespace {

struct CeilingsSettings {
  std::string device = "cuda:0";
  std::vector<std::string> models = {"ti2v-5b", "t2v-a14b"};
  int64_t tokens = 0;
  double seconds = 1;
  int64_t copy_mib = 0;
  std::string output;
};

absl::StatusOr<bool> Run(const CeilingsSettings& settings, Session& session) {
  if (const auto device = session.Open(settings.device); !device.ok()) return device.status();
  absl::StatusOr<CeilingPlan> plan = MakeCeilingPlan(session, settings.models, settings.tokens);
  if (!plan.ok()) return plan.status();
  plan->seconds = settings.seconds;
  if (settings.copy_mib > 0) plan->copy_bytes = plan->host_copy_bytes = settings.copy_mib << 20;
  const absl::StatusOr<MeasuredCeilings> measured = MeasureCeilings(session, *plan);
  if (!measured.ok()) return measured.status();
  std::string path = settings.output;
  if (path.empty()) {
    // The reports of wanctl look for the ceilings of this device in this file.
    namespace reports = client::reports;
    path = reports::KeptCeilingsPath(reports::DataHome(), measured->ceilings.device);
    if (path.empty()) {
      session.Note("the ceilings are not kept: neither XDG_DATA_HOME nor HOME names a folder");
      return true;
    }
    // If the folder cannot be created, the error is reported when the file is written.
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  }
  if (absl::Status status = WriteCeilings(path, measured->ceilings, measured->rows); !status.ok()) {
    return status;
  }
  session.Note("the ceilings are in " + path);
  return true;
}

}  // namespace

BenchCommand AddCeilings(CLI::App& app) {
  const auto settings = std::make_shared<CeilingsSettings>();
  AddDeviceFlag(app, settings->device);
  app.add_option("--model", settings->models, "whose shapes: ti2v-5b, t2v-a14b; may be repeated")
      ->capture_default_str();
  app.add_option("--tokens", settings->tokens,
                 "tokens of the video; 0: those of its published size, on a CPU 512")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seconds", settings->seconds, "how long each rate is measured at least")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--copy-mib", settings->copy_mib,
                 "MiB that a copy moves; 0: 4 GiB within a GPU, 1 GiB to it, 256 MiB on a CPU")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--output", settings->output,
                 "file that gets the ceilings as JSON; default: the device's own in "
                 "$XDG_DATA_HOME/wanserve/ceilings or ~/.local/share/wanserve/ceilings, where "
                 "wanctl's reports find it");
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
