#include "server/conversion/message_texts.h"

#include <google/protobuf/descriptor.h>

#include <memory>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/api/utf8.h"

namespace wan::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::vector<const FieldDescriptor*> FieldsOf(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields;
}

// Returns the index of an entry of a repeated field, or the key of an entry of a map field.
std::string PlaceOf(const FieldDescriptor& field, const Message& entry, int at) {
  const FieldDescriptor* const key = field.is_map() ? field.message_type()->map_key() : nullptr;
  if (key == nullptr || key->type() != FieldDescriptor::TYPE_STRING) return absl::StrCat(at);
  return absl::CHexEscape(entry.GetReflection()->GetString(entry, key));
}

std::optional<std::string> NotUtf8Below(const FieldDescriptor& field, const Message& inner,
                                        const std::string& name) {
  const std::optional<std::string> found = FieldNotUtf8(inner);
  if (!found.has_value()) return std::nullopt;
  // Leave out the names "key" and "value" of map entries, because callers do not know them.
  return field.is_map() ? name : absl::StrCat(name, ".", *found);
}

std::optional<std::string> NotUtf8In(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  const bool text = field.type() == FieldDescriptor::TYPE_STRING;
  if (!field.is_repeated()) {
    if (!text) return NotUtf8Below(field, reflection.GetMessage(message, &field), field.name());
    std::string scratch;
    if (IsUtf8(reflection.GetStringReference(message, &field, &scratch))) return std::nullopt;
    return field.name();
  }
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    if (text) {
      std::string scratch;
      if (IsUtf8(reflection.GetRepeatedStringReference(message, &field, i, &scratch))) continue;
      return absl::StrCat(field.name(), "[", i, "]");
    }
    const Message& inner = reflection.GetRepeatedMessage(message, &field, i);
    std::optional<std::string> found =
        NotUtf8Below(field, inner, absl::StrCat(field.name(), "[", PlaceOf(field, inner, i), "]"));
    if (found.has_value()) return found;
  }
  return std::nullopt;
}

bool HasTexts(const FieldDescriptor& field) {
  return field.type() == FieldDescriptor::TYPE_STRING ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

}  // namespace

bool ReadsBack(const Message& message) {
  std::string bytes;
  if (!message.SerializeToString(&bytes)) return false;
  const std::unique_ptr<Message> read(message.New());
  return read->ParseFromString(bytes);
}

std::optional<std::string> FieldNotUtf8(const Message& message) {
  for (const FieldDescriptor* const field : FieldsOf(message)) {
    if (!HasTexts(*field)) continue;
    std::optional<std::string> found = NotUtf8In(message, *field);
    if (found.has_value()) return found;
  }
  return std::nullopt;
}

void MendTexts(Message& message) {
  const Reflection& reflection = *message.GetReflection();
  for (const FieldDescriptor* const field : FieldsOf(message)) {
    if (!HasTexts(*field)) continue;
    const bool text = field->type() == FieldDescriptor::TYPE_STRING;
    if (!field->is_repeated()) {
      if (text) {
        reflection.SetString(&message, field, ToUtf8(reflection.GetString(message, field)));
      } else {
        MendTexts(*reflection.MutableMessage(&message, field));
      }
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      if (text) {
        reflection.SetRepeatedString(&message, field, i,
                                     ToUtf8(reflection.GetRepeatedString(message, field, i)));
      } else {
        MendTexts(*reflection.MutableRepeatedMessage(&message, field, i));
      }
    }
  }
}

std::string Shortened(const std::string& text, size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  constexpr std::string_view kMark = "...";
  size_t end = most_bytes - kMark.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end).append(kMark);
}

}  // namespace wan::server
