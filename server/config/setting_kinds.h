// Functions that make the rows of the settings table, one for each kind of value.
//
// Each row stands for one member of ServerConfig.
#pragma once

#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/config/settings.h"

namespace wan::server {

using SettingValues = std::vector<std::string>;

// Returns INVALID_ARGUMENT: "is 'VALUE'; must be RIGHT".
absl::Status MustBe(std::string_view value, std::string_view right);

// Joins words: "a", "a or b", "a, b or c". The list must not be empty.
std::string OneOf(std::vector<std::string> words);

// Parses the whole text as a number; returns nothing if the text is not a number.
template <typename Number>
std::optional<Number> Parsed(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Points to a member of ServerConfig, or of the engine's options in it.
template <typename T>
class Field {
 public:
  // The conversion is implicit, so that a row can simply name the member:
  // &EngineOptions::cpu_threads.
  Field(T ServerConfig::*member) : of_server_(member) {}   // NOLINT(google-explicit-constructor)
  Field(T EngineOptions::*member) : of_engine_(member) {}  // NOLINT(google-explicit-constructor)
  Field(T H264Options::*member) : of_h264_(member) {}      // NOLINT(google-explicit-constructor)

  // `Config` is ServerConfig or const ServerConfig.
  template <typename Config>
  auto& Of(Config& config) const {
    if (of_engine_ != nullptr) return config.engine.*of_engine_;
    if (of_h264_ != nullptr) return config.engine.h264.*of_h264_;
    return config.*of_server_;
  }

 private:
  T ServerConfig::*of_server_ = nullptr;
  T EngineOptions::*of_engine_ = nullptr;
  T H264Options::*of_h264_ = nullptr;
};

// The value is a text that `check` accepts. The message of an error of `check` continues a sentence
// that begins with the setting's name.
Setting TextSetting(std::string_view key, std::string_view placeholder, std::string_view help,
                    Field<std::string> member,
                    std::function<absl::Status(const std::string&)> check);

Setting AddressSetting(std::string_view key, std::string_view help, Field<HostPort> member);

// The value is an address; an empty text means that the address is not set.
Setting OptionalAddressSetting(std::string_view key, std::string_view help,
                               Field<std::optional<HostPort>> member);

// The value of http_listen: an address, or "none".
Setting HttpListenSetting(std::string_view key, std::string_view help);

// The value is a whole number from `least` to `most`.
Setting IntegerSetting(std::string_view key, std::string_view help, Field<int> member, int least,
                       int most);

// The value is a time from 0 to `most` seconds: "90", or with a unit as in "15m".
Setting SecondsSetting(std::string_view key, std::string_view help, Field<double> member,
                       double most);

// The value is a number from 0 to 1.
Setting RatioSetting(std::string_view key, std::string_view help, Field<double> member);

// The value is a number of bytes, or a number with a unit as in "24GiB".
Setting BytesSetting(std::string_view key, std::string_view help, Field<uint64_t> member);

// The value is a list of texts, none of them empty. The error for an empty text says that it must
// name `what`.
Setting TextsSetting(std::string_view key, std::string_view placeholder, std::string_view help,
                     std::string_view what, Field<std::vector<std::string>> member);

Setting RetentionSetting(std::string_view key, std::string_view help,
                         RetentionRule RetentionPolicy::*rule);

// The value is true or false.
Setting SwitchSetting(std::string_view key, std::string_view help, Field<bool> member);

// The value is one of a few words. If the member has a value without a word, the setting counts as
// unset.
template <typename Value>
Setting ChoiceSetting(std::string_view key, std::string_view placeholder, std::string_view help,
                      Setting::Form form, Field<Value> member,
                      std::vector<std::pair<std::string, Value>> words) {
  return {key,
          placeholder,
          help,
          form,
          [member, words](const SettingValues& values, ServerConfig& config) {
            SettingValues known;
            for (const auto& [word, value] : words) {
              known.push_back(word);
              if (word != values.front()) continue;
              member.Of(config) = value;
              return absl::OkStatus();
            }
            return MustBe(values.front(), OneOf(known));
          },
          [member, words](const ServerConfig& config) {
            for (const auto& [word, value] : words) {
              if (value == member.Of(config)) return SettingValues{word};
            }
            return SettingValues{""};
          }};
}

}  // namespace wan::server
