#include "engine/checkpoint/known_loras.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace wan {
namespace {

constexpr std::array<std::string_view, 10> kLayers = {
    "self_attn.q",  "self_attn.k",  "self_attn.v",  "self_attn.o", "cross_attn.q",
    "cross_attn.k", "cross_attn.v", "cross_attn.o", "ffn.0",       "ffn.2"};

// Returns the name in lower case, without the characters between its words.
std::string Plain(const std::string& name) {
  std::string plain = absl::AsciiStrToLower(name);
  std::erase_if(plain, [](unsigned char c) { return std::isalnum(c) == 0; });
  return plain;
}

bool Has(const std::string& name, std::string_view word) {
  return name.find(word) != std::string::npos;
}

// Whether a name belongs to a LoRA for four steps.
bool NamesFourSteps(const LoraFile& file) {
  return std::any_of(file.names.begin(), file.names.end(), [](const std::string& given) {
    const std::string name = Plain(given);
    const bool is_published = Has(name, "lightning") || Has(name, "lightx2v") ||
                              Has(name, "seko") || Has(name, "a14b4stepslora");
    return is_published && (Has(name, "4step") || Has(name, "stepdistill"));
  });
}

// Returns the rank in a name, such as "rank64"; nullopt if no name has a rank.
std::optional<int64_t> NamedRank(const LoraFile& file) {
  constexpr std::string_view kRank = "rank";
  for (const std::string& given : file.names) {
    const std::string name = Plain(given);
    const size_t found = name.find(kRank);
    if (found == std::string::npos) continue;
    std::string_view digits = std::string_view(name).substr(found + kRank.size());
    digits = digits.substr(0, digits.find_first_not_of("0123456789"));
    int64_t rank = 0;
    if (absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &rank)) return rank;
  }
  return std::nullopt;
}

// Whether the file changes all linear layers of all blocks, by products of the rank in its name.
bool ChangesAllBlocks(const LoraFile& file, const TransformerConfig& config) {
  const int64_t rank = NamedRank(file).value_or(file.rank);
  std::set<std::string> changed;
  for (const LoraTerm& term : file.terms) {
    if (term.form != LoraForm::kOne || term.IsDifference()) continue;
    if (term.rank() == rank) changed.insert(term.target);
  }
  for (int64_t block = 0; block < config.num_layers; ++block) {
    for (const std::string_view layer : kLayers) {
      if (!changed.contains(absl::StrCat("blocks.", block, ".", std::string(layer), ".weight"))) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

std::optional<LoraSchedule> RecogniseSchedule(const LoraFile& file,
                                              const TransformerConfig& config) {
  if (!NamesFourSteps(file) || !ChangesAllBlocks(file, config)) return std::nullopt;
  return LoraSchedule{.steps = 4, .shift = 5, .boundary_step = 2};
}

}  // namespace wan
