#include "tests/support/prometheus_text.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wan::support {
namespace {

bool IsNameStart(char c, bool label) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || (!label && c == ':');
}

bool IsNamePart(char c, bool label) {
  return IsNameStart(c, label) || std::isdigit(static_cast<unsigned char>(c));
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::optional<double> ParseNumber(std::string_view text) {
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  if (text == "-Inf") return -std::numeric_limits<double>::infinity();
  if (text == "NaN" || text == "Nan") return std::numeric_limits<double>::quiet_NaN();
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// One line, eaten from the left.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  bool Eat(std::string_view prefix) {
    if (rest_.substr(0, prefix.size()) != prefix) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }

  std::optional<std::string> EatName(bool label) {
    if (rest_.empty() || !IsNameStart(rest_.front(), label)) return std::nullopt;
    size_t end = 1;
    while (end < rest_.size() && IsNamePart(rest_[end], label)) ++end;
    std::string name(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return name;
  }

  // A label's value up to and with the closing quote.
  std::optional<std::string> EatQuoted() {
    std::string value;
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return value;
      if (c != '\\') {
        value += c;
        continue;
      }
      if (Eat("\\")) {
        value += '\\';
      } else if (Eat("\"")) {
        value += '"';
      } else if (Eat("n")) {
        value += '\n';
      } else {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

class Parser {
 public:
  using Families = std::map<std::string, PrometheusFamily, std::less<>>;

  absl::StatusOr<Families> Parse(std::string_view text) {
    if (!text.empty() && text.back() != '\n')
      return absl::InvalidArgumentError("the last line has no line break");
    while (!text.empty()) {
      ++line_;
      const size_t end = text.find('\n');
      if (absl::Status status = ParseLine(text.substr(0, end)); !status.ok()) return status;
      text.remove_prefix(end + 1);
    }
    for (const auto& [name, family] : families_) {
      if (absl::Status status = CheckFamily(family); !status.ok()) return status;
    }
    return std::move(families_);
  }

 private:
  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("line ", line_, ": ", std::string(what)));
  }
  static absl::Status FamilyError(const PrometheusFamily& family, std::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(family.name, ": ", std::string(what)));
  }

  absl::Status ParseLine(std::string_view text) {
    Line line(text);
    if (text.empty()) return absl::OkStatus();
    if (line.Eat("# HELP ")) return ParseHelp(line);
    if (line.Eat("# TYPE ")) return ParseType(line);
    if (text.front() == '#') return absl::OkStatus();
    return ParseSample(line);
  }

  absl::Status ParseHelp(Line& line) {
    const auto name = line.EatName(false);
    if (!name.has_value() || !line.Eat(" ")) return Error("HELP without a name and a text");
    if (!families_.try_emplace(*name).second) return Error("a family begins twice");
    current_ = &families_[*name];
    current_->name = *name;
    current_->help = std::string(line.rest());
    if (current_->help.empty()) return Error("HELP without a text");
    return absl::OkStatus();
  }

  absl::Status ParseType(Line& line) {
    const auto name = line.EatName(false);
    if (!name.has_value() || !line.Eat(" ")) return Error("TYPE without a name and a type");
    if (current_ == nullptr || *name != current_->name)
      return Error("TYPE does not follow its HELP");
    if (!current_->type.empty()) return Error("a second TYPE");
    static const std::set<std::string_view> kTypes = {"counter", "gauge", "histogram", "summary",
                                                      "untyped"};
    if (kTypes.count(line.rest()) == 0) return Error("an unknown type");
    current_->type = std::string(line.rest());
    return absl::OkStatus();
  }

  absl::Status ParseSample(Line& line) {
    PrometheusSample sample;
    auto name = line.EatName(false);
    if (!name.has_value()) return Error("neither a comment nor a sample");
    sample.name = *std::move(name);
    if (line.Eat("{")) {
      if (absl::Status status = ParseLabels(line, sample.labels); !status.ok()) return status;
    }
    if (!line.Eat(" ")) return Error("no blank before the value");
    std::string_view number = line.rest();
    if (const size_t blank = number.find(' '); blank != std::string_view::npos) {
      return Error("a timestamp, which a server must not send");
    }
    const auto value = ParseNumber(number);
    if (!value.has_value()) return Error(absl::StrCat("no number: ", std::string(number)));
    sample.value = *value;
    if (current_ == nullptr || current_->type.empty() || !Belongs(sample.name, *current_)) {
      return Error(absl::StrCat(sample.name, " does not follow the TYPE of its family"));
    }
    if (!seen_.emplace(sample.name, sample.labels).second) return Error("a sample occurs twice");
    current_->samples.push_back(std::move(sample));
    return absl::OkStatus();
  }

  absl::Status ParseLabels(Line& line, PrometheusLabels& labels) {
    while (!line.Eat("}")) {
      if (!labels.empty() && !line.Eat(",")) return Error("no comma between labels");
      const auto name = line.EatName(true);
      if (!name.has_value() || !line.Eat("=\"")) return Error("a label without name or quote");
      const auto value = line.EatQuoted();
      if (!value.has_value()) return Error("a label's value has no end or a wrong escape");
      if (!labels.emplace(*name, *value).second) return Error("a label occurs twice");
    }
    return absl::OkStatus();
  }

  static bool Belongs(std::string_view sample, const PrometheusFamily& family) {
    if (family.type == "histogram" || family.type == "summary") {
      for (const char* suffix : {"_bucket", "_sum", "_count"}) {
        if (sample == family.name + suffix) return true;
      }
      return family.type == "summary" && sample == family.name;
    }
    return sample == family.name;
  }

  static absl::Status CheckFamily(const PrometheusFamily& family) {
    if (family.type.empty()) return FamilyError(family, "has no TYPE");
    if (family.samples.empty()) return FamilyError(family, "has no samples");
    if (family.type == "histogram") return CheckHistogram(family);
    if (family.type == "summary") return absl::OkStatus();
    if (family.type == "counter" && !EndsWith(family.name, "_total")) {
      return FamilyError(family, "is a counter that does not end with _total");
    }
    std::set<std::string> names;
    for (const PrometheusSample& sample : family.samples) {
      if (family.type == "counter" && !(sample.value >= 0 && std::isfinite(sample.value))) {
        return FamilyError(family, "is a counter that is negative or not finite");
      }
      std::set<std::string> own;
      for (const auto& [label, value] : sample.labels) own.insert(label);
      if (&sample != &family.samples.front() && own != names) {
        return FamilyError(family, "has samples with different label names");
      }
      names = std::move(own);
    }
    return absl::OkStatus();
  }

  struct Series {
    double bound = -std::numeric_limits<double>::infinity();
    double in_bucket = 0;
    std::optional<double> sum, count;
  };

  static absl::Status CheckHistogram(const PrometheusFamily& family) {
    std::map<PrometheusLabels, Series> all;
    for (const PrometheusSample& sample : family.samples) {
      PrometheusLabels labels = sample.labels;
      if (sample.name == family.name + "_bucket") {
        const auto bound = labels.find("le");
        if (bound == labels.end()) return FamilyError(family, "has a bucket without le");
        const auto limit = ParseNumber(bound->second);
        if (!limit.has_value()) return FamilyError(family, "has a bucket whose le is no number");
        labels.erase(bound);
        Series& series = all[labels];
        if (!(*limit > series.bound)) return FamilyError(family, "has bounds that do not grow");
        if (!(sample.value >= series.in_bucket)) return FamilyError(family, "has counts that fall");
        series.bound = *limit;
        series.in_bucket = sample.value;
      } else {
        const bool sum = sample.name == family.name + "_sum";
        (sum ? all[labels].sum : all[labels].count) = sample.value;
      }
    }
    for (const auto& [labels, series] : all) {
      if (series.bound != std::numeric_limits<double>::infinity()) {
        return FamilyError(family, "has no bucket up to +Inf");
      }
      if (!series.count.has_value() || !series.sum.has_value()) {
        return FamilyError(family, "has no _count or no _sum");
      }
      if (*series.count != series.in_bucket) {
        return FamilyError(family, "has a _count that is not its last bucket");
      }
    }
    return absl::OkStatus();
  }

  int line_ = 0;
  Families families_;
  PrometheusFamily* current_ = nullptr;
  std::set<std::pair<std::string, PrometheusLabels>> seen_;
};

}  // namespace

absl::StatusOr<PrometheusText> PrometheusText::Parse(std::string_view text) {
  auto families = Parser().Parse(text);
  if (!families.ok()) return families.status();
  PrometheusText parsed;
  parsed.families_ = *std::move(families);
  return parsed;
}

const PrometheusFamily* PrometheusText::Find(std::string_view family) const {
  const auto found = families_.find(family);
  return found == families_.end() ? nullptr : &found->second;
}

std::optional<double> PrometheusText::Value(std::string_view name,
                                            const PrometheusLabels& labels) const {
  for (const auto& [family_name, family] : families_) {
    for (const PrometheusSample& sample : family.samples) {
      if (sample.name == name && sample.labels == labels) return sample.value;
    }
  }
  return std::nullopt;
}

}  // namespace wan::support
