// Cleans prompts as upstream does before it splits them into tokens.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan {

// Returns the prompt in the form that the tokenizer expects. The steps are, in order:
//   - each line, repeated until nothing changes: HTML entities (unless this or an earlier line has
//     a literal '<'), C1 controls as windows-1252, Latin ligatures, full-width and half-width
//     forms, curly quotes, line ends, terminal escapes, control characters, NFC;
//   - HTML entities twice more, as browsers read them;
//   - runs of white space become one U+0020, and none is left at either end.
// The result is valid UTF-8, may be empty, and may hold U+FFFD, zero-width and bidi characters.
//
// The result equals upstream's whitespace_clean(basic_clean(text)) with ftfy 6.3.1, except that
// ftfy's repair of wrongly decoded text ("mojibake") is left out. docs/design/text.md has the
// rules, and says what the omission changes.
//
// INVALID_ARGUMENT if `utf8` is not valid UTF-8; surrogates and overlong forms are not valid. The
// message names the offset of the first invalid byte. The time grows linearly with the length of
// the text. Thread-safe.
absl::StatusOr<std::string> CleanPrompt(std::string_view utf8);

}  // namespace wan
