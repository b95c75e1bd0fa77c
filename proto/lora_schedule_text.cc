#include "proto/lora_schedule_text.h"

#include <cmath>
#include <set>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace wan {
namespace {

// Parses numbers with '/' between them; empty if one of them is not a finite number.
std::vector<double> ParseNumbers(absl::string_view text) {
  std::vector<double> numbers;
  for (const absl::string_view part : absl::StrSplit(text, '/')) {
    double number = 0;
    if (!absl::SimpleAtod(part, &number) || !std::isfinite(number)) return {};
    numbers.push_back(number);
  }
  return numbers;
}

// Takes one entry. Returns whether it is right.
bool Take(absl::string_view key, absl::string_view value, wan::v1::LoraSchedule& schedule) {
  const std::vector<double> numbers = ParseNumbers(value);
  if (numbers.empty()) return false;
  if (key == "sigmas") {
    schedule.mutable_sigmas()->Assign(numbers.begin(), numbers.end());
    return true;
  }
  if (key == "guidance_scale") {
    schedule.mutable_guidance_scale()->Assign(numbers.begin(), numbers.end());
    return true;
  }
  if (numbers.size() > 1) return false;
  if (key == "shift") {
    schedule.set_shift(numbers.front());
    return true;
  }
  int32_t whole = 0;
  if (!absl::SimpleAtoi(value, &whole)) return false;
  if (key == "steps") schedule.set_steps(whole);
  if (key == "boundary_step") schedule.set_boundary_step(whole);
  return key == "steps" || key == "boundary_step";
}

}  // namespace

absl::StatusOr<wan::v1::LoraSchedule> ParseLoraSchedule(std::string_view text) {
  const absl::string_view view(text.data(), text.size());
  wan::v1::LoraSchedule schedule;
  if (view == "none") return schedule;
  std::set<absl::string_view> keys;
  bool good = true;
  for (const absl::string_view entry : absl::StrSplit(view, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(entry, absl::MaxSplits(':', 1));
    good = good && parts.size() == 2 && keys.insert(parts[0]).second &&
           Take(parts[0], parts[1], schedule);
  }
  if (good && !keys.contains("steps")) schedule.set_steps(schedule.sigmas_size());
  if (good && schedule.steps() > 0) return schedule;
  return absl::InvalidArgumentError(absl::StrCat(
      "is '", view,
      "'; must be none, or a list of steps, shift, boundary_step, guidance_scale and sigmas, for "
      "example steps:4,shift:5,boundary_step:2 or sigmas:1/0.75/0.5/0.25,shift:5"));
}

}  // namespace wan
