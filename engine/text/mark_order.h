// Brings long runs of combining marks into canonical order.
#pragma once

#include <string>
#include <string_view>

namespace wan {

// Returns a canonically equivalent text: in every run of more than 32 marks, decomposes the marks
// and sorts them stably by their combining class. All normal forms of the text stay the same.
// Without this order ICU would need quadratic time, because it moves each mark past all earlier
// marks of a higher class. A text without runs of more than 32 marks is returned unchanged. The
// function takes linear time. Thread-safe.
std::u32string OrderMarks(std::u32string_view text);

}  // namespace wan
