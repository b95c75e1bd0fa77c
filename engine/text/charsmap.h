// Character normalization by the rules that a SentencePiece model carries.
#pragma once

#include <unicode/brkiter.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wan {

// A compiled map from short character sequences to their replacements. The replacement is looked up
// the way Hugging Face's tokenizers do, which is not SentencePiece's leftmost-longest: a grapheme
// of fewer than six bytes that *begins* with a key becomes the replacement of the shortest such
// key, and what follows in the grapheme is lost ("2" for a superscript two with an accent); in all
// other graphemes each code point is looked up alone.
class Charsmap {
 public:
  // `compiled`: byte count of the trie (32 bits, little endian), the trie (a Darts-clone double
  // array), the replacements, each closed by NUL. Empty means that nothing is replaced. DATA_LOSS
  // if the parts do not fit together.
  static absl::StatusOr<Charsmap> Parse(std::string_view compiled);

  // The text with every rule applied once. Byte sequences that are not UTF-8 become U+FFFD.
  std::string Normalize(std::string_view utf8) const;

 private:
  Charsmap() = default;

  // Replacement of the shortest key that `text` begins with.
  std::optional<std::string_view> FindPrefix(std::string_view text) const;
  // Appends one grapheme's normal form.
  void AppendNormalized(std::string_view grapheme, std::string& out) const;

  std::vector<uint32_t> trie_;
  std::string replacements_;
  // Cloned for every text: an iterator has a position.
  std::unique_ptr<const icu::BreakIterator> graphemes_;
};

}  // namespace wan
