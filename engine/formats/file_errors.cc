#include "engine/formats/file_errors.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace wan {
namespace {

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

std::string Message(std::string_view file, std::string_view what) {
  return absl::StrCat(Absl(file), ": ", Absl(what));
}

}  // namespace

absl::Status Damaged(std::string_view file, std::string_view what) {
  return absl::DataLossError(Message(file, what));
}

absl::Status Absent(std::string_view file, std::string_view what) {
  return absl::NotFoundError(Message(file, what));
}

absl::Status Unsupported(std::string_view file, std::string_view what) {
  return absl::UnimplementedError(Message(file, what));
}

absl::Status CheckNotForeign(std::string_view file, std::span<const std::byte> bytes,
                             FileContent expected) {
  const std::string foreign = NameForeignContent(
      {reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kForeignContentBytes)},
      expected);
  return foreign.empty() ? absl::OkStatus() : Damaged(file, foreign);
}

absl::Status Summarise(std::span<const absl::Status> problems) {
  constexpr size_t kShown = 3;
  std::string message(problems.front().message());
  for (size_t i = 1; i < problems.size() && i < kShown; ++i) {
    absl::StrAppend(&message, "; ", problems[i].message());
  }
  if (problems.size() > kShown) {
    absl::StrAppend(&message, "; and ", problems.size() - kShown, " more problems");
  }
  return absl::Status(problems.front().code(), message);
}

std::string Printable(std::string_view untrusted) {
  constexpr size_t kLongest = 120;
  const bool cut = untrusted.size() > kLongest;
  std::string text = absl::CHexEscape(Absl(untrusted.substr(0, kLongest)));
  if (cut) text += "...";
  return text;
}

}  // namespace wan
