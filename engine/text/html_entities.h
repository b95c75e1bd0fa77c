// Resolves the character references of HTML 5 as browsers (and Python's html module) do. All
// functions are thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wan {

// Returns the windows-1252 character for a code from U+0080 to U+009F, because this is how HTML
// reads numeric references to C1 controls. The five codes that windows-1252 does not define are
// returned unchanged.
char32_t Windows1252FromC1(char32_t c1);

// Returns the one or two characters of an entity; nullopt if there is no entity with this name.
// `name` does not include the '&'. `name` includes the ';' if the name in the standard does: "amp;"
// and "amp" are names, "hellip" is not. Upper and lower case are different.
std::optional<std::u32string> FindHtmlEntity(std::string_view name);

// Resolves every reference once: numbers with or without ';', names, and text that begins with a
// name that needs no ';' ("&notit;" becomes U+00AC followed by "it;"). References to surrogates, to
// U+0000 and beyond Unicode become U+FFFD. References to other control characters and to
// noncharacters are removed. All other text stays unchanged.
std::u32string UnescapeHtml(std::u32string_view text);

}  // namespace wan
