#include "server/tracing/span_ids.h"

#include <cmath>
#include <cstdint>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/store/digest.h"

namespace wan::server {
namespace {

constexpr size_t kSpanIdDigits = 16;

// Returns a random number that is not 0, because 0 means no ID.
uint64_t RandomNumber() {
  thread_local std::random_device random;
  uint64_t number = 0;
  while (number == 0) number = uint64_t{random()} << 32 | random();
  return number;
}

std::string HexOf(uint64_t number) { return absl::StrFormat("%016x", number); }

std::string SpanIdOf(const std::string& text) { return Sha256Hex(text).substr(0, kSpanIdDigits); }

}  // namespace

wan::v1::TraceContext NewTrace(double sampling_ratio) {
  // W3C Trace Context requires that the last 56 bits of a trace ID are random.
  constexpr uint64_t kRandomBits = (uint64_t{1} << 56) - 1;
  const uint64_t low = RandomNumber();
  wan::v1::TraceContext trace;
  trace.set_trace_id(HexOf(RandomNumber()) + HexOf(low));
  trace.set_sampled(static_cast<double>(low & kRandomBits) < std::ldexp(sampling_ratio, 56));
  return trace;
}

std::string JobSpanId(std::string_view job) { return SpanIdOf(std::string(job)); }

std::string AttemptSpanId(std::string_view job, int attempt) {
  return SpanIdOf(absl::StrCat(std::string(job), "/attempts/", attempt));
}

std::string NewSpanId() { return HexOf(RandomNumber()); }

}  // namespace wan::server
