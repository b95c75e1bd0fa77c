// Measures one component, or one job, without the server. Every command prints a table or, with
// --json, one line of JSON per row, whose fields bench_row.h describes.
// docs/measured/performance.md says how to repeat the published measurements.
#include <c10/util/Exception.h>

#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "benchmarks/commands.h"

namespace wan {
namespace {

struct Entry {
  const char* name;
  const char* what;
  BenchCommand (*add)(CLI::App&);
};

constexpr Entry kCommands[] = {
    {"ceilings", "Measures what the device gives at best, which rows are held to", &AddCeilings},
    {"forward", "Measures one forward pass of a transformer", &AddForward},
    {"group", "Measures one step on several devices beside the same on one", &AddGroup},
    {"block", "Measures each operator of one block and says what it should take", &AddBlock},
    {"attention", "Measures attention at the transformers' shapes, beside cuDNN's", &AddAttention},
    {"vae", "Measures one pass of a video through an autoencoder", &AddVae},
    {"text", "Measures the text encoder", &AddText},
    {"load", "Measures the loading of a transformer from a file in the page cache", &AddLoad},
    {"memory", "Compares each stage's peak memory with the plan's estimate", &AddMemory},
    {"lora", "Measures the switch between two LoRAs of a transformer", &AddLora},
    {"finite", "Measures the check of a step's latents for NaN beside a forward", &AddFinite},
    {"job", "Measures whole jobs of the engine, stage by stage", &AddJob},
    {"stop", "Measures how long a stop takes in every stage", &AddStop},
#ifdef WAN_BENCH_HAS_QUEUE
    {"queue", "Measures what a long queue of jobs costs the server", &AddQueue},
#endif
    {"encoder", "Measures a video encoder's speed, quality and memory", &AddEncoder},
};

// Returns 0; 1 after an error, or if a limit was not kept.
int Carry(const BenchCommand& command, Session& session) {
  try {
    const absl::StatusOr<bool> kept = command(session);
    if (kept.ok()) return *kept ? 0 : 1;
    std::fprintf(stderr, "wan_bench: %s\n", kept.status().ToString().c_str());
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "wan_bench: %s\n", error.what_without_backtrace());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "wan_bench: %s\n", error.what());
  }
  return 1;
}

int Main(int argc, char** argv) {
  CLI::App app("Measures the parts of wanserve, without the server");
  SessionOptions options;
  app.add_flag("--json", options.json, "rows as lines of JSON instead of a table");
  app.add_option("--rows", options.rows, "file that each row is added to as a line of JSON");
  app.add_option("--ceilings", options.ceilings,
                 "file of `wan_bench ceilings`; without it a GPU's are measured when needed");
  app.add_flag("--no-ceilings", options.no_ceilings, "measure no ceilings: rows have no ratio");
  app.require_subcommand(1);
  app.fallthrough();
  std::vector<std::pair<CLI::App*, BenchCommand>> commands;
  for (const Entry& entry : kCommands) {
    CLI::App* const sub = app.add_subcommand(entry.name, entry.what);
    commands.emplace_back(sub, entry.add(*sub));
  }
  CLI11_PARSE(app, argc, argv);
  for (const auto& [sub, command] : commands) {
    if (!sub->parsed()) continue;
    Session session(sub->get_name(), options);
    return Carry(command, session);
  }
  return 1;
}

}  // namespace
}  // namespace wan

int main(int argc, char** argv) { return wan::Main(argc, argv); }
