// Unpacks gzip, for tests of what is sent so.
#pragma once

#include <string>
#include <string_view>

namespace wan::support {

// The text; empty, and a failure of the test, if `packed` is not one whole file of gzip.
std::string Gunzip(std::string_view packed);

}  // namespace wan::support
