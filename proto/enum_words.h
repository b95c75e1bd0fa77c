// The words by which programs know the contract's enum values. In the contract, each value has its
// word as the option (wan.v1.word). Client and server take the words from here, so that a new value
// needs no second list. All functions are pure, and any thread may call them.
#pragma once

#include <google/protobuf/generated_enum_reflection.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wan {

// Do what the functions below do, for an enum given by its descriptor and a value given by its
// number.
std::string_view WordOf(const google::protobuf::EnumDescriptor& type, int value);
std::optional<int> NumberOf(const google::protobuf::EnumDescriptor& type, std::string_view word);
std::vector<std::string> WordsOf(const google::protobuf::EnumDescriptor& type);
std::string ValuesOf(const google::protobuf::EnumDescriptor& type);

// Returns the word of a value, for example "dpm++" for SOLVER_DPMPP. Empty for a value without a
// word (UNSPECIFIED), and for a value that this program does not know. The word stays valid as long
// as the process runs.
template <typename Enum>
std::string_view WordOf(Enum value) {
  return WordOf(*google::protobuf::GetEnumDescriptor<Enum>(), value);
}

// Returns the value with this word, in upper or lower case; nullopt if no value has it.
template <typename Enum>
std::optional<Enum> ValueOf(std::string_view word) {
  const std::optional<int> number = NumberOf(*google::protobuf::GetEnumDescriptor<Enum>(), word);
  return number.has_value() ? std::optional(static_cast<Enum>(*number)) : std::nullopt;
}

// Returns all words, in the order of the contract.
template <typename Enum>
std::vector<std::string> WordsOf() {
  return WordsOf(*google::protobuf::GetEnumDescriptor<Enum>());
}

// Returns the names of all values that have a word: "SOLVER_UNIPC, SOLVER_DPMPP or SOLVER_EULER".
template <typename Enum>
std::string ValuesOf() {
  return ValuesOf(*google::protobuf::GetEnumDescriptor<Enum>());
}

}  // namespace wan
