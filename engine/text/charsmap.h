// Replaces characters by the rules of a SentencePiece model.
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

// A compiled map from short character sequences to replacements. Immutable and thread-safe.
//
// Matches as Hugging Face's tokenizers do, not leftmost-longest as SentencePiece does. A grapheme
// of fewer than six bytes that *begins* with a key becomes the replacement of the shortest such
// key, and its rest is lost (a superscript two with an accent becomes "2"). In all other graphemes
// each code point is matched alone.
class Charsmap {
 public:
  // Parses compiled rules: the trie's size in bytes (32 bits, little endian), the trie (a
  // Darts-clone double array), and the replacements, each ending with NUL. Empty rules replace
  // nothing. DATA_LOSS if the parts do not fit together.
  static absl::StatusOr<Charsmap> Parse(std::string_view compiled);

  // Returns the text with all rules applied once. Invalid UTF-8 becomes U+FFFD.
  std::string Normalize(std::string_view utf8) const;

 private:
  Charsmap() = default;

  // Returns the replacement of the shortest key that `text` begins with.
  std::optional<std::string_view> FindPrefix(std::string_view text) const;
  // Appends a grapheme after replacement.
  void AppendNormalized(std::string_view grapheme, std::string& out) const;

  std::vector<uint32_t> trie_;
  std::string replacements_;
  // Normalize clones it for each text, because an iterator has a position.
  std::unique_ptr<const icu::BreakIterator> graphemes_;
};

}  // namespace wan
