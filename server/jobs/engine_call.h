// Calls the engine from the server, and turns exceptions of libraries into statuses.
#pragma once

#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace wan::server {

// Calls `call`, which returns absl::Status or absl::StatusOr, and returns its result.
// std::bad_alloc becomes RESOURCE_EXHAUSTED, any other exception INTERNAL.
template <typename Call>
auto CallEngine(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the engine ran out of memory");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the engine threw: ", error.what()));
  } catch (...) {
    return absl::InternalError("the engine threw an exception that is not a std::exception");
  }
}

}  // namespace wan::server
