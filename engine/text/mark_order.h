// Puts long runs of combining marks into canonical order.
#pragma once

#include <string>
#include <string_view>

namespace wan {

// Returns a canonically equivalent text: in every run of more than 32 marks the marks are
// decomposed and stably sorted by combining class. Its normal forms equal those of `text`, and ICU,
// which moves each mark that is out of order past those before it, takes linear instead of
// quadratic time. Other texts are returned as they are. Takes linear time. Thread-safe.
std::u32string OrderMarks(std::u32string_view text);

}  // namespace wan
