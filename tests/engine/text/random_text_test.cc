// Random bytes and mutated prompts through cleaning and tokenizer: no crash, and what must hold for
// every text.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/text/cleaning.h"
#include "engine/text/tokenizer.h"
#include "tests/engine/text/text_cases.h"

namespace wan {
namespace {

class RandomText : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loaded = Tokenizer::Load(GoldenTokenizerPath());
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    tokenizer_ = *std::move(loaded);
    for (const auto& golden : GoldenCleaning()) {
      prompts_.push_back(golden["raw"].get<std::string>());
    }
  }

  size_t Below(size_t limit) { return random_() % limit; }

  std::string RandomBytes() {
    std::string bytes(Below(200), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

  // A golden prompt with characters put in, lost and doubled, and parts of others put in. One
  // change in eight is to bytes, and mostly leaves something that is not UTF-8.
  std::string MutatedPrompt() {
    std::string text = prompts_[Below(prompts_.size())];
    for (size_t changes = 1 + Below(6); changes > 0; --changes) {
      const bool to_bytes = Below(8) == 0;
      const std::string& other = prompts_[Below(prompts_.size())];
      const size_t at = Position(text, Below(text.size() + 1), to_bytes);
      const size_t end = Position(text, at + Below(12), to_bytes);
      const size_t other_at = Position(other, Below(other.size() + 1), to_bytes);
      const size_t other_end = Position(other, other_at + Below(12), to_bytes);
      switch (Below(4)) {
        case 0:
          text.insert(at, 1, static_cast<char>(random_() & (to_bytes ? 0xFF : 0x7F)));
          break;
        case 1:
          text.erase(at, end - at);
          break;
        case 2:
          text.insert(at, text.substr(at, end - at));
          break;
        default:
          text.insert(at, other.substr(other_at, other_end - other_at));
      }
    }
    return text;
  }

  // `at`, or else the end of the character there; at most the end of the text.
  static size_t Position(const std::string& text, size_t at, bool inside_characters) {
    while (!inside_characters && at < text.size() && (text[at] & 0xC0) == 0x80) ++at;
    return std::min(at, text.size());
  }

  void Check(const std::string& raw) {
    ExpectIdsInRange(raw);  // The tokenizer copes with what cleaning refuses.
    const absl::StatusOr<std::string> cleaned = CleanPrompt(raw);
    if (!cleaned.ok()) {
      EXPECT_EQ(cleaned.status().code(), absl::StatusCode::kInvalidArgument);
      ++refused_;
      return;
    }
    ++cleaned_;
    ExpectIdsInRange(*cleaned);
    EXPECT_EQ(cleaned->find("  "), std::string::npos);
    EXPECT_EQ(cleaned->find_first_of("\t\n\v\f\r"), std::string::npos);
    if (!cleaned->empty()) {
      EXPECT_NE(cleaned->front(), ' ');
      EXPECT_NE(cleaned->back(), ' ');
    }
    // What entities leave behind may be cleaned further by a second pass; without '&' in any width
    // nothing may.
    if (raw.find('&') == std::string::npos && raw.find("\uFF06") == std::string::npos) {
      ++without_entities_;
      EXPECT_EQ(CleanPrompt(*cleaned).value_or("error"), *cleaned);
    }
  }

  void ExpectIdsInRange(const std::string& text) {
    const std::vector<int64_t> ids = tokenizer_->Encode(text, 64);
    ASSERT_FALSE(ids.empty());
    EXPECT_LE(ids.size(), 64U);
    EXPECT_EQ(ids.back(), Tokenizer::kEndId);
    for (const int64_t id : ids) {
      EXPECT_GE(id, 0);
      EXPECT_LT(id, tokenizer_->vocabulary_size());
    }
  }

  std::mt19937 random_{2026};
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::string> prompts_;
  int refused_ = 0;
  int cleaned_ = 0;
  int without_entities_ = 0;
};

TEST_F(RandomText, Bytes) {
  for (int i = 0; i < 2000; ++i) Check(RandomBytes());
  EXPECT_GT(refused_, 1900);
}

TEST_F(RandomText, MutatedPrompts) {
  for (int i = 0; i < 2000; ++i) Check(MutatedPrompt());
  // The mutations leave enough of both kinds for the checks to mean something.
  EXPECT_GT(refused_, 200);
  EXPECT_GT(cleaned_, 1000);
  EXPECT_GT(without_entities_, 500);
}

}  // namespace
}  // namespace wan
