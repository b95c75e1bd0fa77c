#include "engine/device/compiled_archs.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace wan {
namespace {

// Code for "90a" runs only on compute capability 9.0, code for "80" on 8.0 to 8.9.
bool RunsOn(int compute_capability, std::string architecture) {
  const bool exact = !architecture.empty() && absl::ascii_isalpha(architecture.back());
  if (exact) architecture.pop_back();
  int compiled = 0;
  if (!absl::SimpleAtoi(architecture, &compiled)) return false;
  if (exact) return compute_capability == compiled;
  return compute_capability / 10 == compiled / 10 && compute_capability >= compiled;
}

}  // namespace

absl::Status CheckCompiledFor(int compute_capability, const std::string& card,
                              const std::string& architectures) {
  const std::vector<std::string> compiled = absl::StrSplit(architectures, ';');
  for (const std::string& architecture : compiled) {
    if (RunsOn(compute_capability, architecture)) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(card, " has compute capability ", compute_capability / 10, ".",
                   compute_capability % 10, ", and the CUDA kernels of this build are for ",
                   absl::StrReplaceAll(architectures, {{";", ", "}}),
                   "; build with -DWAN_CUDA_ARCHS=", compute_capability, " for this card"));
}

}  // namespace wan
