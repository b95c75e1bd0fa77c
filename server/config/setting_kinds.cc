#include "server/config/setting_kinds.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/conversion/quantity.h"

namespace wan::server {

absl::Status MustBe(std::string_view value, std::string_view right) {
  return absl::InvalidArgumentError(
      absl::StrCat("is '", std::string(value), "'; must be ", std::string(right)));
}

std::string OneOf(std::vector<std::string> words) {
  const std::string last = words.back();
  words.pop_back();
  return words.empty() ? last : absl::StrCat(absl::StrJoin(words, ", "), " or ", last);
}

namespace {

using Values = std::vector<std::string>;

// At most 1,024 TiB, so that sums of several settings do not overflow.
constexpr uint64_t kMostBytes = uint64_t{1} << 50;

// Returns the shortest text that is parsed to the same number.
std::string Shortest(double number) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), number);
  return error == std::errc() ? std::string(text, end) : std::string();
}

}  // namespace

Setting TextSetting(std::string_view key, std::string_view placeholder, std::string_view help,
                    Field<std::string> member,
                    std::function<absl::Status(const std::string&)> check) {
  return {key,
          placeholder,
          help,
          Setting::Form::kText,
          [member, check = std::move(check)](const Values& values, ServerConfig& config) {
            if (absl::Status status = check(values.front()); !status.ok()) return status;
            member.Of(config) = values.front();
            return absl::OkStatus();
          },
          [member](const ServerConfig& config) { return Values{member.Of(config)}; }};
}

Setting AddressSetting(std::string_view key, std::string_view help, Field<HostPort> member) {
  return {key,
          "HOST:PORT",
          help,
          Setting::Form::kText,
          [member](const Values& values, ServerConfig& config) {
            absl::StatusOr<HostPort> parsed = ParseHostPort(values.front());
            if (parsed.ok()) member.Of(config) = *parsed;
            return parsed.status();
          },
          [member](const ServerConfig& config) { return Values{ToString(member.Of(config))}; }};
}

Setting OptionalAddressSetting(std::string_view key, std::string_view help,
                               Field<std::optional<HostPort>> member) {
  return {key,
          "HOST:PORT",
          help,
          Setting::Form::kText,
          [member](const Values& values, ServerConfig& config) {
            member.Of(config).reset();
            if (values.front().empty()) return absl::OkStatus();
            absl::StatusOr<HostPort> parsed = ParseHostPort(values.front());
            if (parsed.ok()) member.Of(config) = *parsed;
            return parsed.status();
          },
          [member](const ServerConfig& config) {
            const std::optional<HostPort>& address = member.Of(config);
            return Values{address.has_value() ? ToString(*address) : ""};
          }};
}

Setting HttpListenSetting(std::string_view key, std::string_view help) {
  static constexpr char kNone[] = "none";
  return {key,
          "HOST:PORT",
          help,
          Setting::Form::kText,
          [](const Values& values, ServerConfig& config) {
            config.http_listen.reset();
            config.http_listen_chosen = true;
            if (values.front().empty() || values.front() == kNone) return absl::OkStatus();
            absl::StatusOr<HostPort> parsed = ParseHostPort(values.front());
            if (parsed.ok()) config.http_listen = *parsed;
            return parsed.status();
          },
          [](const ServerConfig& config) {
            return Values{config.http_listen.has_value() ? ToString(*config.http_listen) : kNone};
          }};
}

Setting IntegerSetting(std::string_view key, std::string_view help, Field<int> member, int least,
                       int most) {
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
            member.Of(config) = *number;
            return absl::OkStatus();
          },
          [member](const ServerConfig& config) { return Values{absl::StrCat(member.Of(config))}; }};
}

Setting SecondsSetting(std::string_view key, std::string_view help, Field<double> member,
                       double most) {
  return {key,
          "SECONDS",
          help,
          Setting::Form::kNumber,
          [=](const Values& values, ServerConfig& config) {
            const std::optional<double> seconds = ParseSeconds(values.front(), most);
            if (!seconds.has_value()) return MustBe(values.front(), SecondsRule(most));
            member.Of(config) = *seconds;
            return absl::OkStatus();
          },
          [member](const ServerConfig& config) { return Values{Shortest(member.Of(config))}; }};
}

Setting RatioSetting(std::string_view key, std::string_view help, Field<double> member) {
  return {key,
          "RATIO",
          help,
          Setting::Form::kNumber,
          [member](const Values& values, ServerConfig& config) {
            const std::optional<double> ratio = Parsed<double>(values.front());
            if (!ratio.has_value() || !(*ratio >= 0 && *ratio <= 1)) {
              return MustBe(values.front(), "a number from 0 to 1, for example 0.1");
            }
            member.Of(config) = *ratio;
            return absl::OkStatus();
          },
          [member](const ServerConfig& config) { return Values{Shortest(member.Of(config))}; }};
}

Setting TextsSetting(std::string_view key, std::string_view placeholder, std::string_view help,
                     std::string_view what, Field<std::vector<std::string>> member) {
  return {key,
          placeholder,
          help,
          Setting::Form::kList,
          [=](const Values& values, ServerConfig& config) {
            for (const std::string& text : values) {
              if (text.empty()) {
                return absl::InvalidArgumentError(
                    absl::StrCat("is empty; must name ", std::string(what)));
              }
            }
            member.Of(config) = values;
            return absl::OkStatus();
          },
          [member](const ServerConfig& config) { return member.Of(config); }};
}

Setting BytesSetting(std::string_view key, std::string_view help, Field<uint64_t> member) {
  return {key,
          "BYTES",
          help,
          Setting::Form::kNumber,
          [member](const Values& values, ServerConfig& config) {
            const std::optional<uint64_t> bytes = ParseBytes(values.front(), kMostBytes);
            if (!bytes.has_value()) return MustBe(values.front(), BytesRule(kMostBytes));
            member.Of(config) = *bytes;
            return absl::OkStatus();
          },
          [member](const ServerConfig& config) { return Values{BytesText(member.Of(config))}; }};
}

Setting SwitchSetting(std::string_view key, std::string_view help, Field<bool> member) {
  return ChoiceSetting<bool>(key, "true|false", help, Setting::Form::kNumber, member,
                             {{"true", true}, {"false", false}});
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
