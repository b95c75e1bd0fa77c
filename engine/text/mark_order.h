// Brings long runs of combining marks into canonical order.
#pragma once

#include <string>
#include <string_view>

namespace wan {

// Returns a text that is canonically equivalent: in every run of more than 32 marks, the marks are
// decomposed and stably sorted by their combining class. All normal forms stay the same. But ICU
// then needs linear time; otherwise it would need quadratic time, because it moves each mark past
// all earlier ones of a higher class. A text without such runs is returned unchanged. The function
// takes linear time. Thread-safe.
std::u32string OrderMarks(std::u32string_view text);

}  // namespace wan
