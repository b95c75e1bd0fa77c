// Prompt cleaning: what upstream does to a prompt before its tokenizer sees it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan {

// The prompt as the tokenizer wants it. In order:
//   - every line on its own, until a whole round changes nothing: HTML entities (unless this line
//   or
//     an earlier one holds a literal '<'), C1 controls as windows-1252, Latin ligatures, full-width
//     and half-width forms, curly quotes, line ends, terminal escapes, control characters, NFC;
//   - HTML entities twice more, as browsers read them;
//   - runs of white space become one U+0020; none is left at either end.
// The result is valid UTF-8, may be empty, and may hold U+FFFD, zero-width and bidi characters.
//
// Equal to upstream's whitespace_clean(basic_clean(text)) with ftfy 6.3.1, but for ftfy's repair of
// damaged encodings ("mojibake"), which is left out: text that was read in a wrong encoding stays
// as it is. docs/text.md has the rules and what the omission changes.
//
// INVALID_ARGUMENT if `utf8` is not valid UTF-8 (surrogates and overlong forms are not); the
// message names the offset of the first wrong byte. Takes time linear in the text. Thread-safe.
absl::StatusOr<std::string> CleanPrompt(std::string_view utf8);

}  // namespace wan
