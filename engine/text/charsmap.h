// Replaces characters according to the rules of a SentencePiece model.
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

// A compiled map from short sequences of characters to their replacements. Immutable and
// thread-safe.
//
// The map matches as Hugging Face's tokenizers do, not leftmost-longest as SentencePiece does. If a
// grapheme of fewer than six bytes *begins* with a key, the replacement of its shortest key
// replaces the whole grapheme. The rest of the grapheme is lost: a superscript two with an accent
// becomes "2". In all other graphemes, each code point is looked up alone.
class Charsmap {
 public:
  // Parses compiled rules. Compiled rules consist of the size of the trie in bytes (32 bits, little
  // endian), the trie (a Darts-clone double array), and the replacements, each of which ends with
  // NUL. If the rules are empty, nothing is replaced. DATA_LOSS if the parts do not fit together.
  static absl::StatusOr<Charsmap> Parse(std::string_view compiled);

  // Returns the text after all rules were applied once. Bytes that are not valid UTF-8 become
  // U+FFFD.
  std::string Normalize(std::string_view utf8) const;

 private:
  Charsmap() = default;

  // Returns the replacement of the shortest key with which `text` begins.
  std::optional<std::string_view> FindPrefix(std::string_view text) const;
  // Appends a grapheme, replaced if a key matches.
  void AppendNormalized(std::string_view grapheme, std::string& out) const;

  std::vector<uint32_t> trie_;
  std::string replacements_;
  // Normalize clones this iterator for each text, because an iterator has a position.
  std::unique_ptr<const icu::BreakIterator> graphemes_;
};

}  // namespace wan
