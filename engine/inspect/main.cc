// The program wan_inspect, which describes a checkpoint, the memory of its jobs on a card, and the
// tokens of a text.

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/inspect/checkpoint_report.h"
#include "engine/inspect/diffusers_layout.h"
#include "engine/inspect/lora_report.h"
#include "engine/inspect/memory_report.h"
#include "engine/inspect/token_service.h"

namespace {

constexpr int kOk = 0;
constexpr int kDamaged = 1;
constexpr int kUsage = 2;

void PrintJson(const nlohmann::ordered_json& report) {
  std::cout << report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

int InspectCheckpoint(const std::string& path, bool as_json) {
  const nlohmann::ordered_json report = wan::InspectCheckpoint(path);
  if (as_json) {
    PrintJson(report);
  } else {
    std::cout << wan::ReportText(report);
  }
  return report["ok"].get<bool>() ? kOk : kDamaged;
}

int InspectLora(const std::string& path, const std::string& model, bool as_json) {
  const nlohmann::ordered_json report = wan::InspectLora(path, model);
  if (as_json) {
    PrintJson(report);
  } else {
    std::cout << wan::LoraReportText(report);
  }
  return report["ok"].get<bool>() ? kOk : kDamaged;
}

// The flags of the command `plan`, before they are parsed.
struct PlanFlags {
  double memory_gib = 0;
  std::vector<std::string> shapes;
  std::vector<std::string> residency;
  std::string quality;
  std::vector<std::string> eight_bit_weights;
};

// Parses the flags and stores the result in `question`. If a flag is wrong, prints the error on
// stderr and returns false.
bool ReadFlags(const PlanFlags& flags, wan::MemoryQuestion& question) {
  constexpr double kGiB = 1 << 30;
  question.device_memory_limit = static_cast<uint64_t>(std::llround(flags.memory_gib * kGiB));
  for (const std::string& text : flags.shapes) {
    wan::VideoShape shape;
    int used = 0;
    if (std::sscanf(text.c_str(), "%5dx%5dx%5d%n", &shape.width, &shape.height, &shape.num_frames,
                    &used) != 3 ||
        used != static_cast<int>(text.size())) {
      std::cerr << "wan_inspect: --shape is '" << text << "'; must be WIDTHxHEIGHTxFRAMES\n";
      return false;
    }
    question.shapes.push_back(shape);
  }
  if (!flags.quality.empty()) {
    question.quality = wan::ParseQuality(flags.quality);
    if (!question.quality.has_value()) {
      std::cerr << "wan_inspect: --quality is '" << flags.quality
                << "'; must be exact, high or fast\n";
      return false;
    }
  }
  for (const std::string& text : flags.residency) {
    const std::optional<wan::ComponentResidency> entry = wan::ParseComponentResidency(text);
    if (!entry.has_value()) {
      std::cerr << "wan_inspect: --residency-policy is '" << text
                << "'; must be COMPONENT=POLICY with auto, resident, host, stream, disk or cpu\n";
      return false;
    }
    question.residency.push_back(*entry);
  }
  for (const std::string& text : flags.eight_bit_weights) {
    if (wan::SetEightBitPart(text, question.eight_bit_weights)) continue;
    std::cerr << "wan_inspect: --eight-bit-weights is '" << text
              << "'; must be transformers or text_encoder\n";
    return false;
  }
  return true;
}

int PlanMemory(const wan::MemoryQuestion& question, bool as_json) {
  const absl::StatusOr<nlohmann::ordered_json> report = wan::MemoryReport(question);
  if (!report.ok()) {
    std::cerr << "wan_inspect: " << report.status().message() << "\n";
    return kDamaged;
  }
  if (as_json) {
    PrintJson(*report);
  } else {
    std::cout << wan::MemoryReportText(*report);
  }
  return (*report)["fits"].get<bool>() ? kOk : kDamaged;
}

int AnswerTokens(const std::string& path) {
  const absl::StatusOr<wan::TokenService> service = wan::TokenService::Open(path);
  if (!service.ok()) {
    std::cerr << "wan_inspect: " << service.status().message() << "\n";
    return kDamaged;
  }
  std::string line;
  // Flush after each line, because the reader may wait for an answer before it sends the next
  // prompt.
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
  CLI::App app{
      "Describes Wan checkpoints and LoRAs. Exit codes: 0 the file is sound (plan: everything "
      "fits), "
      "1 it is damaged (plan: something does not fit), 2 wrong usage."};
  app.require_subcommand(1);
  std::string path;
  bool as_json = false;
  CLI::App* const checkpoint = app.add_subcommand(
      "checkpoint",
      "Prints layout, model, components, dimensions, dtypes, bytes and every problem");
  checkpoint
      ->add_option("PATH", path,
                   "Folder of the checkpoint, a component's file, KEY=FILE,..., or synthetic:NAME")
      ->required();
  checkpoint->add_flag("--json", as_json, "One JSON object in place of the text");
  CLI::App* const lora = app.add_subcommand(
      "lora", "Prints what a LoRA changes in a model, its factor, and what it leaves out");
  std::string model;
  lora->add_option("FILE", path, "The LoRA: a safetensors file, or a folder that PEFT wrote")
      ->required();
  lora->add_option("MODEL", model, "Folder of the model's checkpoint, or synthetic:NAME")
      ->required();
  lora->add_flag("--json", as_json, "One JSON object in place of the text");
  CLI::App* const tokens = app.add_subcommand("tokens",
                                              "Reads lines {\"text\": ...} from stdin; answers "
                                              "each with {\"cleaned\": ..., \"ids\": [...]} or "
                                              "{\"error\": ...}");
  tokens->add_option("PATH", path, "Folder of a checkpoint, or its SentencePiece model")
      ->required();
  CLI::App* const diffusers = app.add_subcommand(
      "to-diffusers",
      "Writes a copy of a checkpoint in the layout of diffusers, with the same weights");
  std::string to;
  diffusers->add_option("FROM", path, "Folder of the checkpoint")->required();
  diffusers->add_option("TO", to, "Folder to create; must be absent or empty")->required();
  PlanFlags flags;
  wan::MemoryQuestion question;
  CLI::App* const plan = app.add_subcommand(
      "plan",
      "Prints the memory that videos would take on a card, where the weights would live, and "
      "which sizes would fit instead; loads nothing");
  plan->add_option("PATH", question.path, "Folder of the checkpoint, or synthetic:NAME")
      ->required();
  plan->add_option("--memory", flags.memory_gib,
                   "GiB that the server may use of the card, like device_memory_limit; 0: no limit")
      ->check(CLI::Range(0.0, 1e6));
  plan->add_option("--shape", flags.shapes,
                   "WIDTHxHEIGHTxFRAMES; may be repeated; default: the model's");
  plan->add_option("--residency-policy", flags.residency, "COMPONENT=POLICY; may be repeated");
  plan->add_option("--quality", flags.quality,
                   "exact, high or fast; default: exact, or high with transformers in 8 bits");
  plan->add_option("--eight-bit-weights", flags.eight_bit_weights,
                   "transformers or text_encoder, whose weights are then in 8 bits; may be "
                   "repeated");
  plan->add_flag("--image", question.image,
                 "Plan videos that start from an image, if the model can also start without one");
  plan->add_flag("--json", as_json, "One JSON object in place of the text");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  if (diffusers->parsed()) return WriteDiffusers(path, to);
  if (lora->parsed()) return InspectLora(path, model, as_json);
  if (plan->parsed()) {
    return ReadFlags(flags, question) ? PlanMemory(question, as_json) : kUsage;
  }
  return checkpoint->parsed() ? InspectCheckpoint(path, as_json) : AnswerTokens(path);
}
