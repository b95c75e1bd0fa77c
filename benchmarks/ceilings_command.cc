// Measures what the device gives at best, which the rows of all other commands are held to.
//
//   wan_bench ceilings --device cuda:0 --output ceilings.json
//   wan_bench ceilings --device cpu --output ceilings.json
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/bench_flags.h"
#include "benchmarks/commands.h"
#include "benchmarks/measure_ceilings.h"

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
  if (settings.output.empty()) return true;
  if (absl::Status status = WriteCeilings(settings.output, measured->ceilings, measured->rows);
      !status.ok()) {
    return status;
  }
  session.Note("the ceilings are in " + settings.output);
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
  app.add_option("--output", settings->output, "file that gets the ceilings as JSON");
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
