// Measures how long the text encoder takes for one text of --tokens tokens, with its weights on the
// device.
//
//   wan_bench text --device cuda:0 --tokens 512
#include <c10/core/InferenceMode.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/bench_flags.h"
#include "benchmarks/commands.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/costs/wan/umt5_cost.h"
#include "engine/models/wan/umt5.h"

namespace wan {
namespace {

struct TextSettings {
  std::string model = "synthetic:ti2v-5b";
  std::string device = "cuda:0";
  std::string dtype = "bf16";
  std::vector<int64_t> tokens = {512, 32};
  int repeats = 10;
  int warmup = 2;
};

absl::StatusOr<bool> Run(const TextSettings& settings, Session& session) {
  const c10::InferenceMode inference;
  const absl::StatusOr<at::Device> device = session.Open(settings.device);
  if (!device.ok()) return device.status();
  if (absl::Status status = session.FindCeilings(); !status.ok()) return status;
  const auto checkpoint = Checkpoint::Open(settings.model);
  if (!checkpoint.ok()) return checkpoint.status();
  const auto encoder =
      LoadUmt5((*checkpoint)->text_encoder(), (*checkpoint)->text_encoder_config(),
               {.device = *device, .dtype = settings.dtype == "fp32" ? at::kFloat : at::kBFloat16});
  if (!encoder.ok()) return encoder.status();
  const TextEncoderConfig& config = (*encoder)->config();
  for (const int64_t tokens : settings.tokens) {
    std::vector<int64_t> ids(static_cast<size_t>(tokens));
    for (size_t i = 0; i < ids.size(); ++i) {
      ids[i] = 1 + static_cast<int64_t>(7919 * i) % (config.vocab_size - 1);
    }
    const std::string name = absl::StrCat(settings.model, " ", tokens, " tokens ", settings.dtype);
    absl::StatusOr<BenchRow> row =
        session.Repeat(name, {.warmup = settings.warmup, .repeats = settings.repeats},
                       [&] { return (*encoder)->Encode(ids).status(); });
    if (!row.ok()) return row.status();
    // The encoder reads all weights once per text. For a short text, this reading is the lower
    // bound of the time. But the encoder reads only one row of the token table per token.
    const double table =
        static_cast<double>(config.vocab_size * config.dim) * (settings.dtype == "fp32" ? 4 : 2);
    row->work = Work{.product_flop = TextEncoderFlops(config, tokens),
                     .bytes = static_cast<double>((*encoder)->WeightBytes()) - table,
                     .precision = settings.dtype};
    if (absl::Status status = session.Add(*std::move(row)); !status.ok()) return status;
  }
  return true;
}

}  // namespace

BenchCommand AddText(CLI::App& app) {
  const auto settings = std::make_shared<TextSettings>();
  AddModelFlag(app, settings->model);
  AddDeviceFlag(app, settings->device);
  AddDtypeFlag(app, settings->dtype);
  app.add_option("--tokens", settings->tokens, "length of a text; may be repeated")
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  AddRepeatsFlag(app, settings->repeats);
  AddWarmupFlag(app, settings->warmup);
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
