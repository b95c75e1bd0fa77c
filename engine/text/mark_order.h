// Puts long runs of combining marks into canonical order.
#pragma once

#include <string>
#include <string_view>

namespace wan {

// Returns a canonically equivalent text in which the marks of every run of more than 32 are
// decomposed and stand in the order of their combining classes, those of one class as before. So
// its normal forms are those of `text`, and ICU, which puts each mark that is out of order in its
// place by moving those before it, takes linear instead of quadratic time. Other texts are returned
// as they are. Takes linear time. Thread-safe.
std::u32string OrderMarks(std::u32string_view text);

}  // namespace wan
