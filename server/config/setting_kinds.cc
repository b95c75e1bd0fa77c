#include "server/config/setting_kinds.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/conversion/quantity.h"

namespace wan::server {

absl::Status MustBe(std::string_view value, std::string_view right) {
  return absl::InvalidArgumentError(
      absl::StrCat("is '", std::string(value), "'; it must be ", std::string(right)));
}

std::string OneOf(std::vector<std::string> words) {
  const std::string last = words.back();
  words.pop_back();
  return words.empty() ? last : absl::StrCat(absl::StrJoin(words, ", "), " or ", last);
}

namespace {

using Values = std::vector<std::string>;

// 1,024 TiB: sums of several settings do not overflow.
constexpr uint64_t kMostBytes = uint64_t{1} << 50;

// Returns the shortest text that reads back as the same number.
std::string Shortest(double number) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), number);
  return error == std::errc() ? std::string(text, end) : std::string();
}

}  // namespace

Setting TextSetting(std::string_view key, std::string_view placeholder, std::string_view help,
                    std::string ServerConfig::*member,
                    std::function<absl::Status(const std::string&)> check) {
  return {key,
          placeholder,
          help,
          Setting::Form::kText,
          [member, check = std::move(check)](const Values& values, ServerConfig& config) {
            if (absl::Status status = check(values.front()); !status.ok()) return status;
            config.*member = values.front();
            return absl::OkStatus();
          },
          [member](const ServerConfig& config) { return Values{config.*member}; }};
}

Setting AddressSetting(std::string_view key, std::string_view help,
                       HostPort ServerConfig::*member) {
  return {key,
          "HOST:PORT",
          help,
          Setting::Form::kText,
          [member](const Values& values, ServerConfig& config) {
            absl::StatusOr<HostPort> parsed = ParseHostPort(values.front());
            if (parsed.ok()) config.*member = *parsed;
            return parsed.status();
          },
          [member](const ServerConfig& config) { return Values{ToString(config.*member)}; }};
}

Setting OptionalAddressSetting(std::string_view key, std::string_view help,
                               std::optional<HostPort> ServerConfig::*member) {
  return {key,
          "HOST:PORT",
          help,
          Setting::Form::kText,
          [member](const Values& values, ServerConfig& config) {
            (config.*member).reset();
            if (values.front().empty()) return absl::OkStatus();
            absl::StatusOr<HostPort> parsed = ParseHostPort(values.front());
            if (parsed.ok()) config.*member = *parsed;
            return parsed.status();
          },
          [member](const ServerConfig& config) {
            const std::optional<HostPort>& address = config.*member;
            return Values{address.has_value() ? ToString(*address) : ""};
          }};
}

Setting IntegerSetting(std::string_view key, std::string_view help, int ServerConfig::*member,
                       int least, int most) {
  return {key,
          "N",
          help,
          Setting::Form::kNumber,
          [=](const Values& values, ServerConfig& config) {
            const std::optional<int> number = Parsed<int>(values.front());
            if (!number.has_value() || *number < least || *number > most) {
              return MustBe(values.front(),
                            absl::StrCat("a whole number from ", least, " to ", most));
            }
            config.*member = *number;
            return absl::OkStatus();
          },
          [member](const ServerConfig& config) { return Values{absl::StrCat(config.*member)}; }};
}

Setting SecondsSetting(std::string_view key, std::string_view help, double ServerConfig::*member,
                       double most) {
  return {key,
          "SECONDS",
          help,
          Setting::Form::kNumber,
          [=](const Values& values, ServerConfig& config) {
            const std::optional<double> seconds = ParseSeconds(values.front(), most);
            if (!seconds.has_value()) return MustBe(values.front(), SecondsRule(most));
            config.*member = *seconds;
            return absl::OkStatus();
          },
          [member](const ServerConfig& config) { return Values{Shortest(config.*member)}; }};
}

Setting RatioSetting(std::string_view key, std::string_view help, double ServerConfig::*member) {
  return {key,
          "RATIO",
          help,
          Setting::Form::kNumber,
          [member](const Values& values, ServerConfig& config) {
            const std::optional<double> ratio = Parsed<double>(values.front());
            if (!ratio.has_value() || !(*ratio >= 0 && *ratio <= 1)) {
              return MustBe(values.front(), "a number from 0 to 1, for example 0.1");
            }
            config.*member = *ratio;
            return absl::OkStatus();
          },
          [member](const ServerConfig& config) { return Values{Shortest(config.*member)}; }};
}

Setting TextsSetting(std::string_view key, std::string_view placeholder, std::string_view help,
                     std::string_view what, std::vector<std::string> ServerConfig::*member) {
  return {key,
          placeholder,
          help,
          Setting::Form::kList,
          [=](const Values& values, ServerConfig& config) {
            for (const std::string& text : values) {
              if (text.empty()) {
                return absl::InvalidArgumentError(
                    absl::StrCat("is empty; it must name ", std::string(what)));
              }
            }
            config.*member = values;
            return absl::OkStatus();
          },
          [member](const ServerConfig& config) { return config.*member; }};
}

Setting BytesSetting(std::string_view key, std::string_view help, uint64_t ServerConfig::*member) {
  return {key,
          "BYTES",
          help,
          Setting::Form::kNumber,
          [member](const Values& values, ServerConfig& config) {
            const std::optional<uint64_t> bytes = ParseBytes(values.front(), kMostBytes);
            if (!bytes.has_value()) return MustBe(values.front(), BytesRule(kMostBytes));
            config.*member = *bytes;
            return absl::OkStatus();
          },
          [member](const ServerConfig& config) { return Values{BytesText(config.*member)}; }};
}

Setting RetentionSetting(std::string_view key, std::string_view help,
                         RetentionRule RetentionPolicy::*rule) {
  return {key,
          "AGE|BYTES|COUNT",
          help,
          Setting::Form::kText,
          [rule](const Values& values, ServerConfig& config) {
            absl::StatusOr<RetentionRule> parsed = ParseRetentionRule(values.front());
            if (parsed.ok()) config.retention.*rule = *parsed;
            return parsed.status();
          },
          [rule](const ServerConfig& config) { return Values{ToString(config.retention.*rule)}; }};
}

}  // namespace wan::server
