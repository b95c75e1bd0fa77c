#include "server/conversion/public_text.h"

#include "absl/strings/str_replace.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

constexpr std::string_view kBefore = " \t\n'\"`([{<=,;";
constexpr std::string_view kBehind = " \t\n'\"`)]}>,;:";

// Returns where the path ends that begins at `begin`.
size_t EndOfPath(std::string_view text, size_t begin) {
  const size_t end = text.find_first_of(kBehind, begin);
  return end == std::string_view::npos ? text.size() : end;
}

}  // namespace

std::string WithoutFolders(std::string_view text, std::span<const std::string> folders) {
  std::string known(text);
  for (const std::string& folder : folders) {
    // Removing the folder leaves a relative path, which the loop below skips.
    if (folder.size() > 1 && folder.front() == '/')
      absl::StrReplaceAll({{folder + "/", ""}}, &known);
  }
  std::string result;
  for (size_t at = 0; at < known.size();) {
    const bool begins =
        known[at] == '/' && (at == 0 || kBefore.find(known[at - 1]) != kBefore.npos);
    if (!begins) {
      result += known[at++];
      continue;
    }
    const size_t end = EndOfPath(known, at);
    std::string_view path = std::string_view(known).substr(at, end - at);
    while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
    result += path.size() > 1 ? path.substr(path.rfind('/') + 1) : path;
    at = end;
  }
  return result;
}

absl::Status WithoutFolders(const absl::Status& status, std::span<const std::string> folders) {
  if (status.ok()) return status;
  const absl::string_view message = status.message();
  return WithMessage(status, WithoutFolders({message.data(), message.size()}, folders));
}

}  // namespace wan::server
