#include "demo/evaluate/vocabulary.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace wan::demo {
namespace {

using Json = nlohmann::ordered_json;

std::vector<NamedColour> Colours(const Json& table) {
  std::vector<NamedColour> colours;
  for (const auto& [name, entry] : table.items()) {
    const Json& rgb = entry.at("rgb");
    colours.push_back({name, {rgb[0].get<float>(), rgb[1].get<float>(), rgb[2].get<float>()}});
  }
  return colours;
}

std::vector<std::string> Names(const Json& table) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : table.items()) names.push_back(name);
  return names;
}

}  // namespace

float Distance(const Rgb& a, const Rgb& b) {
  const float r = a.r - b.r, g = a.g - b.g, d = a.b - b.b;
  return std::sqrt(r * r + g * g + d * d);
}

const Vocabulary& TheVocabulary() {
  // The object is never destroyed, because threads may read it while the program ends.
  static const Vocabulary* const vocabulary = [] {
    const Json json = Json::parse(kVocabularyJson);
    return new Vocabulary{Colours(json.at("colours")), Colours(json.at("backgrounds")),
                          Names(json.at("shapes")), Names(json.at("motions"))};
  }();
  return *vocabulary;
}

int NearestColour(const std::vector<NamedColour>& table, const Rgb& rgb) {
  int nearest = 0;
  for (int i = 1; i < static_cast<int>(table.size()); ++i) {
    if (Distance(table[i].rgb, rgb) < Distance(table[nearest].rgb, rgb)) nearest = i;
  }
  return nearest;
}

}  // namespace wan::demo
