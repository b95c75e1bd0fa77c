#include "proto/enum_words.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "wan/v1/enum_words.pb.h"

namespace wan {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;

const std::string& Word(const EnumValueDescriptor& value) {
  return value.options().GetExtension(wan::v1::word);
}

// Calls `take` for each value that has a word.
template <typename Take>
void ForEachWord(const EnumDescriptor& type, Take take) {
  for (int i = 0; i < type.value_count(); ++i) {
    const EnumValueDescriptor& value = *type.value(i);
    if (!Word(value).empty()) take(value);
  }
}

}  // namespace

std::string_view WordOf(const EnumDescriptor& type, int value) {
  const EnumValueDescriptor* const known = type.FindValueByNumber(value);
  return known == nullptr ? std::string_view() : std::string_view(Word(*known));
}

std::optional<int> NumberOf(const EnumDescriptor& type, std::string_view word) {
  std::optional<int> number;
  ForEachWord(type, [&](const EnumValueDescriptor& value) {
    if (absl::EqualsIgnoreCase(Word(value), absl::string_view(word.data(), word.size()))) {
      number = value.number();
    }
  });
  return number;
}

std::vector<std::string> WordsOf(const EnumDescriptor& type) {
  std::vector<std::string> words;
  ForEachWord(type, [&](const EnumValueDescriptor& value) { words.push_back(Word(value)); });
  return words;
}

std::string ValuesOf(const EnumDescriptor& type) {
  std::vector<std::string> names;
  ForEachWord(type, [&](const EnumValueDescriptor& value) { names.push_back(value.name()); });
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&list, i == 0 ? "" : i + 1 < names.size() ? ", " : " or ", names[i]);
  }
  return list;
}

}  // namespace wan
