// Sorts long runs of combining marks canonically.
#pragma once

#include <string>
#include <string_view>

namespace wan {

// Returns a canonically equivalent text: in every run of more than 32 marks, the marks are
// decomposed and stably sorted by combining class. All normal forms stay the same, but ICU needs
// linear instead of quadratic time, because it moves each mark past all earlier ones of a higher
// class. Other texts are returned unchanged. Takes linear time. Thread-safe.
std::u32string OrderMarks(std::u32string_view text);

}  // namespace wan
