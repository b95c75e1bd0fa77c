// Names and colours of the demo's world, from demo/vocabulary.json, which training reads, too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wan::demo {

// 0 to 255.
struct Rgb {
  float r = 0;
  float g = 0;
  float b = 0;
};

float Distance(const Rgb& a, const Rgb& b);

struct NamedColour {
  std::string name;
  Rgb rgb;
};

struct Vocabulary {
  std::vector<NamedColour> colours;  // of objects
  std::vector<NamedColour> backgrounds;
  std::vector<std::string> shapes;
  std::vector<std::string> motions;
};

// The file as it was when the program was built. Thread-safe.
const Vocabulary& TheVocabulary();

// Index of the nearest; `table` is not empty.
int NearestColour(const std::vector<NamedColour>& table, const Rgb& rgb);

// The file's text.
extern const char kVocabularyJson[];

}  // namespace wan::demo
