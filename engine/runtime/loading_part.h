// Records the parts of a load in the span of its stage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/api/recorder.h"

namespace wan {

// Measures how long a part of loading takes: from construction, or the previous End(), to End().
// Does nothing if `span`, which must outlive the object, is null.
class LoadingPart {
 public:
  explicit LoadingPart(Span* span) : span_(span), start_(span == nullptr ? 0 : span->Seconds()) {}

  void End(std::string_view name, std::optional<int64_t> bytes = std::nullopt) {
    if (span_ == nullptr) return;
    SpanPart part{std::string(name), start_, span_->Seconds() - start_, std::nullopt, std::nullopt};
    if (bytes.has_value()) part.bytes = static_cast<uint64_t>(*bytes);
    span_->AddPart(std::move(part));
    start_ = span_->Seconds();
  }

 private:
  Span* const span_;
  double start_;
};

}  // namespace wan
