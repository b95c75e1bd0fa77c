#include "engine/checkpoint/file_errors.h"

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

std::string Printable(std::string_view untrusted) {
  constexpr size_t kLongest = 120;
  const bool cut = untrusted.size() > kLongest;
  std::string text = absl::CHexEscape(Absl(untrusted.substr(0, kLongest)));
  if (cut) text += "...";
  return text;
}

}  // namespace wan
