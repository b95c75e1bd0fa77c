// Normalizes characters by the rules of a SentencePiece model.
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

// A compiled map from short character sequences to their replacements. Immutable and thread-safe.
//
// It looks replacements up as Hugging Face's tokenizers do, and not leftmost-longest as
// SentencePiece does: a grapheme of fewer than six bytes that *begins* with a key becomes the
// replacement of the shortest such key, and the rest of the grapheme is lost (a superscript two
// with an accent becomes "2"); in all other graphemes each code point is looked up alone.
class Charsmap {
 public:
  // Parses the compiled rules: the byte count of the trie (32 bits, little endian), the trie (a
  // Darts-clone double array), and the replacements, each ended by NUL. Empty rules replace
  // nothing. DATA_LOSS if the parts do not fit together.
  static absl::StatusOr<Charsmap> Parse(std::string_view compiled);

  // Returns the text with every rule applied once. Byte sequences that are not UTF-8 become U+FFFD.
  std::string Normalize(std::string_view utf8) const;

 private:
  Charsmap() = default;

  // Returns the replacement of the shortest key with which `text` begins.
  std::optional<std::string_view> FindPrefix(std::string_view text) const;
  // Appends the normal form of one grapheme.
  void AppendNormalized(std::string_view grapheme, std::string& out) const;

  std::vector<uint32_t> trie_;
  std::string replacements_;
  // Normalize clones it for every text, because an iterator has a position.
  std::unique_ptr<const icu::BreakIterator> graphemes_;
};

}  // namespace wan
