// Measures how long the check of a step's latents for NaN and infinity takes, compared with one
// forward pass. A step consists of one forward, or of two with guidance.
//
//   wan_bench finite --device cuda:0 --shape 1280x704x121 --at-most 0.05
#include <c10/core/InferenceMode.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/bench_flags.h"
#include "benchmarks/benched_transformer.h"
#include "benchmarks/commands.h"
#include "engine/device/finite_check.h"

namespace wan {
namespace {

struct FiniteSettings {
  std::string model = "synthetic:ti2v-5b";
  std::string device = "cuda:0";
  std::string dtype = "bf16";
  std::string shape = BenchShape().Name();
  Repetition repetition = {.warmup = 2, .repeats = 5};
  double check_seconds = 0.5;
  double at_most = 0;  // maximum percentage of a forward that the check may take; 0: no limit
};

absl::StatusOr<bool> Run(const FiniteSettings& settings, Session& session) {
  const c10::InferenceMode inference;
  const absl::StatusOr<BenchShape> shape = ParseShape(settings.shape);
  if (!shape.ok()) return shape.status();
  const absl::StatusOr<at::Device> device = session.Open(settings.device);
  if (!device.ok()) return device.status();
  const absl::StatusOr<BenchedTransformer> benched =
      LoadToBench(session, {.model = settings.model, .dtype = settings.dtype, .shape = *shape});
  if (!benched.ok()) return benched.status();
  const std::string name = absl::StrCat(settings.model, " ", settings.shape, " ", settings.dtype);

  const auto text = benched->PrepareTexts(/*texts=*/1, /*rows=*/128);
  if (!text.ok()) return text.status();
  const absl::StatusOr<BenchRow> forward =
      session.Repeat(absl::StrCat(name, ": forward"), settings.repetition, [&] {
        return benched->transformer->Forward(benched->latents, benched->timestep, **text).status();
      });
  if (!forward.ok()) return forward.status();
  if (absl::Status status = session.Add(*forward); !status.ok()) return status;

  // Checks run back to back, so the time includes their launches. The result is an upper bound: in
  // a step, the launches overlap with the forward.
  FiniteCheck check;
  BenchRow row = session.Sustain(absl::StrCat(name, ": check of the latents"),
                                 settings.check_seconds, [&] { check.Begin(benched->latents); });
  const double percent = 100 * row.timing->seconds / forward->timing->seconds;
  row.figures = {{"finite", check.IsFinite()},
                 {"latents_mb", static_cast<double>(benched->latents.nbytes()) / 1e6},
                 {"percent_of_forward", percent}};
  if (absl::Status status = session.Add(std::move(row)); !status.ok()) return status;
  if (settings.at_most == 0 || percent <= settings.at_most) return true;
  const std::string problem = absl::StrFormat("the check takes %.4f %% of a forward, more than %g",
                                              percent, settings.at_most);
  std::fprintf(stderr, "wan_bench: %s\n", problem.c_str());
  return false;
}

}  // namespace

BenchCommand AddFinite(CLI::App& app) {
  const auto settings = std::make_shared<FiniteSettings>();
  AddModelFlag(app, settings->model);
  AddDeviceFlag(app, settings->device);
  AddDtypeFlag(app, settings->dtype);
  AddShapeFlag(app, settings->shape);
  AddRepeatsFlag(app, settings->repetition.repeats, "forwards");
  AddWarmupFlag(app, settings->repetition.warmup);
  app.add_option("--check-seconds", settings->check_seconds, "how long checks are repeated")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--at-most", settings->at_most,
                 "per cent of a forward; a check that takes more fails the run; 0: no limit")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
