// The kinds of values that settings have. Only the table of settings uses them.
//
// Each function makes one row of the table, whose value is a member of ServerConfig.
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

// Returns INVALID_ARGUMENT: "is 'VALUE'; it must be RIGHT".
absl::Status MustBe(std::string_view value, std::string_view right);

// Joins words: "a", "a or b", "a, b or c". There must be at least one.
std::string OneOf(std::vector<std::string> words);

// Reads the whole text as a number; nothing if it is not one.
template <typename Number>
std::optional<Number> Parsed(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// A text that `check` accepts. The message of its error continues "SETTING ".
Setting TextSetting(std::string_view key, std::string_view placeholder, std::string_view help,
                    std::string ServerConfig::*member,
                    std::function<absl::Status(const std::string&)> check);

Setting AddressSetting(std::string_view key, std::string_view help, HostPort ServerConfig::*member);

// An address that an empty text takes away.
Setting OptionalAddressSetting(std::string_view key, std::string_view help,
                               std::optional<HostPort> ServerConfig::*member);

// A whole number from `least` to `most`.
Setting IntegerSetting(std::string_view key, std::string_view help, int ServerConfig::*member,
                       int least, int most);

// A time from 0 to `most` seconds: "90", or with a unit as in "15m".
Setting SecondsSetting(std::string_view key, std::string_view help, double ServerConfig::*member,
                       double most);

// A number from 0 to 1.
Setting RatioSetting(std::string_view key, std::string_view help, double ServerConfig::*member);

// A number of bytes, or with a unit as in "24GiB".
Setting BytesSetting(std::string_view key, std::string_view help, uint64_t ServerConfig::*member);

// A list of texts, none of which is empty; the error for an empty one says that it must name
// `what`.
Setting TextsSetting(std::string_view key, std::string_view placeholder, std::string_view help,
                     std::string_view what, std::vector<std::string> ServerConfig::*member);

Setting RetentionSetting(std::string_view key, std::string_view help,
                         RetentionRule RetentionPolicy::*rule);

// A setting whose value is one of a few words.
template <typename Value>
Setting ChoiceSetting(std::string_view key, std::string_view placeholder, std::string_view help,
                      Setting::Form form, Value ServerConfig::*member,
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
              config.*member = value;
              return absl::OkStatus();
            }
            return MustBe(values.front(), OneOf(known));
          },
          [member, words](const ServerConfig& config) {
            for (const auto& [word, value] : words) {
              if (value == config.*member) return SettingValues{word};
            }
            return SettingValues{};
          }};
}

}  // namespace wan::server
