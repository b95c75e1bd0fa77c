// Resolves HTML 5 character references as browsers (and Python's html module) do. All functions are
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wan {

// Returns the windows-1252 character for a code from U+0080 to U+009F: HTML reads numeric
// references to C1 controls so. Five codes that windows-1252 leaves undefined are returned
// unchanged.
char32_t Windows1252FromC1(char32_t c1);

// Returns the one or two characters of an entity; nullopt if there is none. `name` lacks the '&'
// and has the ';' if the standard's name has it: "amp;" and "amp" are names, "hellip" is not. Case
// matters.
std::optional<std::u32string> FindHtmlEntity(std::string_view name);

// Resolves every reference once: numbers with or without ';', names, and text that begins with a
// name that needs no ';' ("&notit;" is U+00AC followed by "it;"). References to surrogates, to
// U+0000 and beyond Unicode become U+FFFD; references to other control characters and to
// noncharacters are removed; everything else stays.
std::u32string UnescapeHtml(std::u32string_view text);

}  // namespace wan
