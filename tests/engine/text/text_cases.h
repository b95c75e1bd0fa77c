// The reference data that the tests of engine/text share.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace wan {

// All values of a JSON Lines file. Fails the test if there is none.
inline std::vector<nlohmann::json> ReadJsonLines(const std::string& path) {
  std::ifstream file(path);
  std::vector<nlohmann::json> cases;
  for (std::string line; std::getline(file, line);) cases.push_back(nlohmann::json::parse(line));
  EXPECT_FALSE(cases.empty()) << "no cases in " << path;
  return cases;
}

// {"name", "group", "raw", "cleaned"} (tests/golden/text/README.md).
inline std::vector<nlohmann::json> GoldenCleaning() {
  return ReadJsonLines(WAN_GOLDEN_DIR "/text/cleaning.jsonl");
}

// {"raw", "cleaned", "ids"} of random prompts (scripts/gen/text_reference.py).
inline std::vector<nlohmann::json> RandomReference() {
  return ReadJsonLines(WAN_TEXT_TESTDATA_DIR "/reference.jsonl");
}

inline std::string GoldenTokenizerPath() {
  return WAN_CHECKPOINT_DIR "/ti2v-5b/original/google/umt5-xxl/spiece.model";
}

}  // namespace wan
