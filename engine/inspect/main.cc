// wan_inspect: what a checkpoint is, and what its tokenizer makes of a text.

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/inspect/checkpoint_report.h"
#include "engine/inspect/diffusers_layout.h"
#include "engine/inspect/token_service.h"

namespace {

constexpr int kOk = 0;
constexpr int kDamaged = 1;
constexpr int kUsage = 2;

int InspectCheckpoint(const std::string& path, bool as_json) {
  const nlohmann::ordered_json report = wan::InspectCheckpoint(path);
  if (as_json) {
    std::cout << report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
              << "\n";
  } else {
    std::cout << wan::ReportText(report);
  }
  return report["ok"].get<bool>() ? kOk : kDamaged;
}

int AnswerTokens(const std::string& path) {
  const absl::StatusOr<wan::TokenService> service = wan::TokenService::Open(path);
  if (!service.ok()) {
    std::cerr << "wan_inspect: " << service.status().message() << "\n";
    return kDamaged;
  }
  std::string line;
  // Flushed line by line: the program on the other side may wait for each answer.
  while (std::getline(std::cin, line)) std::cout << service->Answer(line) << std::endl;
  return kOk;
}

int WriteDiffusers(const std::string& from, const std::string& to) {
  const absl::Status status = wan::WriteDiffusersLayout(from, to);
  if (status.ok()) return kOk;
  std::cerr << "wan_inspect: " << status.message() << "\n";
  return kDamaged;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Describes Wan checkpoints. Exit code: 0 sound, 1 damaged, 2 wrong usage."};
  app.require_subcommand(1);
  std::string path;
  bool as_json = false;
  CLI::App* const checkpoint = app.add_subcommand(
      "checkpoint",
      "Layout, model, components, dimensions, dtypes, bytes; what is missing or wrong");
  checkpoint->add_option("PATH", path, "Folder of the checkpoint, or synthetic:NAME")->required();
  checkpoint->add_flag("--json", as_json, "One JSON object in place of the text");
  CLI::App* const tokens = app.add_subcommand("tokens",
                                              "Reads lines {\"text\": ...} from stdin; answers "
                                              "each with {\"cleaned\": ..., \"ids\": [...]} or "
                                              "{\"error\": ...}");
  tokens->add_option("PATH", path, "Folder of a checkpoint, or its SentencePiece model")
      ->required();
  CLI::App* const diffusers = app.add_subcommand(
      "to-diffusers", "Writes a checkpoint again in diffusers' layout, weights unchanged");
  std::string to;
  diffusers->add_option("FROM", path, "Folder of the checkpoint")->required();
  diffusers->add_option("TO", to, "Folder that is made; absent or empty")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  if (diffusers->parsed()) return WriteDiffusers(path, to);
  return checkpoint->parsed() ? InspectCheckpoint(path, as_json) : AnswerTokens(path);
}
