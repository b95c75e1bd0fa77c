#include "engine/runtime/assumed_rate.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace wan {
namespace {

// The published rates of dense bf16 products with fp32 sums, in TFLOP/s. The first row whose words
// all occur in the card's name is used, so rows with more words come first.
struct Card {
  std::vector<std::string_view> words;
  double tflops;
};

const std::vector<Card>& Cards() {
  static const std::vector<Card> cards = {
      {{"B300"}, 2250},        {{"GB300"}, 2250},
      {{"B200"}, 2250},        {{"GB200"}, 2250},
      {{"H200"}, 989},         {{"GH200"}, 989},
      {{"H100", "PCIe"}, 756}, {{"H100", "NVL"}, 835},
      {{"H100"}, 989},         {{"H800"}, 989},
      {{"H20"}, 148},          {{"A100"}, 312},
      {{"A800"}, 312},         {{"A40"}, 150},
      {{"A10"}, 125},          {{"A10G"}, 70},
      {{"L40S"}, 362},         {{"L40"}, 181},
      {{"L4"}, 121},           {{"6000", "Blackwell"}, 503},
      {{"6000", "Ada"}, 364},  {{"A6000"}, 155},
      {{"5090"}, 209},         {{"4090"}, 165},
      {{"3090"}, 71},
  };
  return cards;
}

// The rate of unknown cards, which is below the rates of all cards in the table.
constexpr double kUnknownTflops = 60;
// The part of the published rate that the engine assumes for jobs. A job on an H200 reaches 0.6 of
// the published rate; work other than large products takes the rest of the time.
constexpr double kReached = 0.45;
// The rate of fp32 relative to bf16: products in fp32 do not use the tensor cores.
constexpr double kFp32Share = 0.05;

// GFLOP/s of one core in fp32, deliberately low. A core of a server from 2020 reaches three times
// as much in large products.
constexpr double kCoreGflops = 10;
// On CPUs without bf16 instructions, the rate of bf16 relative to fp32.
constexpr double kCpuBf16Share = 0.25;

std::vector<std::string_view> WordsOf(std::string_view name) {
  std::vector<std::string_view> words;
  while (!name.empty()) {
    const auto end = std::find_if(name.begin(), name.end(),
                                  [](unsigned char c) { return std::isalnum(c) == 0; });
    const auto length = static_cast<size_t>(end - name.begin());
    if (length > 0) words.push_back(name.substr(0, length));
    name.remove_prefix(std::min(length + 1, name.size()));
  }
  return words;
}

}  // namespace

double AssumedGpuRate(std::string_view name, std::string_view dtype) {
  const std::vector<std::string_view> words = WordsOf(name);
  const auto has = [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const auto found = std::find_if(Cards().begin(), Cards().end(), [&](const Card& card) {
    return std::all_of(card.words.begin(), card.words.end(), has);
  });
  const double tflops = found == Cards().end() ? kUnknownTflops : found->tflops;
  return tflops * 1e12 * kReached * (dtype == "fp32" ? kFp32Share : 1);
}

double AssumedCpuRate(int cores, std::string_view dtype) {
  return std::max(cores, 1) * kCoreGflops * 1e9 * (dtype == "fp32" ? 1 : kCpuBf16Share);
}

}  // namespace wan
