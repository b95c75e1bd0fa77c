// Resolves HTML 5 character references as browsers (and Python's html module) do. All functions are
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wan {

// Returns the character of windows-1252 for a code of U+0080..U+009F, because HTML reads numeric
// references to C1 controls in this way. The five codes that windows-1252 leaves undefined stand
// for themselves.
char32_t Windows1252FromC1(char32_t c1);

// Returns the one or two characters of an entity, or nullopt if there is no such entity. `name` has
// no
// '&', and has the ';' if the standard's name has one: "amp;" and "amp" are both names, "hellip" is
// not. Case matters.
std::optional<std::u32string> FindHtmlEntity(std::string_view name);

// Resolves every reference once: numeric ones with or without ';', names, and text that merely
// begins with one of the names that need no ';' ("&notit;" is U+00AC followed by "it;"). References
// to surrogates, to U+0000 and beyond Unicode give U+FFFD, those to other control characters and to
// noncharacters give nothing; what is not a reference stays.
std::u32string UnescapeHtml(std::u32string_view text);

}  // namespace wan
