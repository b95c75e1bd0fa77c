#include "server/conversion/trace_context.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace wan::server {
namespace {

// The length of VERSION-TRACE_ID-PARENT_ID-FLAGS in hexadecimal digits.
constexpr size_t kParentBytes = 55;
constexpr size_t kTraceIdAt = 3;
constexpr size_t kTraceIdBytes = 32;
constexpr size_t kParentIdAt = 36;
constexpr size_t kParentIdBytes = 16;
constexpr size_t kFlagsAt = 53;
constexpr size_t kFlagsBytes = 2;
constexpr int kSampledFlag = 1;

constexpr size_t kMostMembers = 32;
constexpr size_t kMostMemberPart = 256;  // maximum number of characters of a key or a value
constexpr size_t kMostStateBytes = 512;
// When a state must be shortened, members longer than this are removed first.
constexpr size_t kLongMember = 128;

// Whether all characters are hexadecimal digits, without capital letters.
bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); });
}

bool IsZero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

bool IsParent(std::string_view text) {
  if (text.size() < kParentBytes) return false;
  for (const size_t dash : {kTraceIdAt - 1, kParentIdAt - 1, kFlagsAt - 1}) {
    if (text[dash] != '-') return false;
  }
  const std::string_view version = text.substr(0, 2);
  if (!IsHex(version) || version == "ff") return false;
  // Later versions of the standard may append more fields after another dash.
  if (text.size() > kParentBytes && (version == "00" || text[kParentBytes] != '-')) return false;
  const std::string_view trace = text.substr(kTraceIdAt, kTraceIdBytes);
  const std::string_view parent = text.substr(kParentIdAt, kParentIdBytes);
  return IsHex(trace) && !IsZero(trace) && IsHex(parent) && !IsZero(parent) &&
         IsHex(text.substr(kFlagsAt, kFlagsBytes));
}

bool IsKey(std::string_view key) {
  const auto begins = [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c);
  };
  return !key.empty() && key.size() <= kMostMemberPart &&
         begins(static_cast<unsigned char>(key.front())) &&
         std::all_of(key.begin(), key.end(), [&](unsigned char c) {
           return begins(c) ||
                  std::string_view("_-*/@").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

bool IsValue(std::string_view value) {
  return !value.empty() && value.size() <= kMostMemberPart && value.back() != ' ' &&
         std::all_of(value.begin(), value.end(),
                     [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; });
}

// Returns the members of all header values; nothing if any member is invalid.
std::optional<std::vector<std::string>> MembersOf(const std::vector<std::string_view>& values) {
  std::vector<std::string> members;
  std::set<std::string> keys;
  for (const std::string_view value : values) {
    for (const absl::string_view part :
         absl::StrSplit(absl::string_view(value.data(), value.size()), ',')) {
      const std::string member(absl::StripAsciiWhitespace(part));
      if (member.empty()) continue;
      const size_t equals = member.find('=');
      if (equals == std::string::npos) return std::nullopt;
      const std::string key = member.substr(0, equals);
      if (!IsKey(key) || !IsValue(std::string_view(member).substr(equals + 1)) ||
          !keys.insert(key).second || members.size() == kMostMembers) {
        return std::nullopt;
      }
      members.push_back(member);
    }
  }
  return members;
}

std::string StateOf(const std::vector<std::string_view>& values) {
  std::optional<std::vector<std::string>> members = MembersOf(values);
  if (!members.has_value()) return {};
  std::string state = absl::StrJoin(*members, ",");
  if (state.size() <= kMostStateBytes) return state;
  std::erase_if(*members, [](const std::string& member) { return member.size() > kLongMember; });
  while ((state = absl::StrJoin(*members, ",")).size() > kMostStateBytes) members->pop_back();
  return state;
}

}  // namespace

wan::v1::TraceContext ParseTraceContext(const std::vector<std::string_view>& traceparent,
                                        const std::vector<std::string_view>& tracestate) {
  wan::v1::TraceContext trace;
  if (traceparent.size() != 1 || !IsParent(traceparent.front())) return trace;
  const std::string_view parent = traceparent.front();
  trace.set_trace_id(std::string(parent.substr(kTraceIdAt, kTraceIdBytes)));
  trace.set_parent_span_id(std::string(parent.substr(kParentIdAt, kParentIdBytes)));
  const std::string flags =
      absl::HexStringToBytes(std::string(parent.substr(kFlagsAt, kFlagsBytes)));
  trace.set_sampled((flags.front() & kSampledFlag) != 0);
  trace.set_tracestate(StateOf(tracestate));
  return trace;
}

}  // namespace wan::server
