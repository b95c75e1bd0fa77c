// The names and colours of the demo's world, from demo/vocabulary.json, which the training reads as
// well.
#pragma once

#include <string>
#include <vector>

namespace wan::demo {

// Each channel is 0 to 255.
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
  std::vector<NamedColour> colours;  // the colours of objects
  std::vector<NamedColour> backgrounds;
  std::vector<std::string> shapes;
  std::vector<std::string> motions;
};

// Returns the vocabulary from the file as it was when the program was built. Thread-safe.
const Vocabulary& TheVocabulary();

// Returns the index of the nearest colour; `table` must not be empty.
int NearestColour(const std::vector<NamedColour>& table, const Rgb& rgb);

// The text of the file.
extern const char kVocabularyJson[];

}  // namespace wan::demo
