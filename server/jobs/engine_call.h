// The server's boundary with the engine: where what a library threw becomes a status.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/watch/listener.h"

namespace wan::server {

// Result of `call`, which returns absl::Status or absl::StatusOr; an exception becomes
// RESOURCE_EXHAUSTED (out of memory) or INTERNAL.
template <typename Call>
auto CallEngine(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the engine ran out of memory");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the engine threw: ", error.what()));
  } catch (...) {
    return absl::InternalError("the engine threw something that is no std::exception");
  }
}

// The sinks of one piece of work.
inline std::vector<std::unique_ptr<TelemetrySink>> MakeSinks(
    const std::vector<SinkFactory>& factories, const SinkContext& context) {
  std::vector<std::unique_ptr<TelemetrySink>> sinks;
  sinks.reserve(factories.size());
  for (const SinkFactory& factory : factories) sinks.push_back(factory(context));
  return sinks;
}

}  // namespace wan::server
