#include "server/config/yaml_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/config/settings.h"

namespace wan::server {
namespace {

using Values = std::vector<std::string>;

// Number of single-character changes that turn one word into another.
size_t EditDistance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replaced = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[to.size()];
}

std::string UnknownKey(std::string_view key) {
  Values known;
  std::string_view nearest;
  size_t least = key.size() / 3 + 2;
  for (const Setting& setting : Settings()) {
    known.push_back(std::string(setting.key));
    const size_t distance = EditDistance(key, setting.key);
    if (distance < least) {
      least = distance;
      nearest = setting.key;
    }
  }
  if (!nearest.empty()) {
    return absl::StrCat("is no setting; did you mean ", std::string(nearest), "?");
  }
  return absl::StrCat("is no setting; the settings are ", absl::StrJoin(known, ", "));
}

std::string KindOf(const YAML::Node& node) {
  if (node.IsNull()) return "nothing";
  if (node.IsSequence()) return "a list";
  if (node.IsMap()) return "a mapping";
  return absl::StrCat("'", node.Scalar(), "'");
}

// yaml-cpp marks a quoted scalar with this tag.
bool IsQuoted(const YAML::Node& node) { return node.Tag() == "!"; }

// Reads one file. Problems are collected, so that all of them are told at once.
class Reader {
 public:
  Reader(std::string_view source, ServerConfig& config) : source_(source), config_(config) {}

  void Read(const YAML::Node& root) {
    if (root.IsNull()) return;
    if (!root.IsMap()) {
      Problem(root, "the file",
              absl::StrCat("is ", KindOf(root), ", must be a mapping of settings"));
      return;
    }
    std::set<std::string> seen;
    for (const auto& entry : root) {
      if (!entry.first.IsScalar()) {
        Problem(entry.first, "a key", absl::StrCat("is ", KindOf(entry.first), ", must be a word"));
        continue;
      }
      const std::string& key = entry.first.Scalar();
      if (!seen.insert(key).second) {
        Problem(entry.first, key, "is set twice; keep one");
        continue;
      }
      const Setting* const setting = FindSetting(key);
      if (setting == nullptr) {
        Problem(entry.first, key, UnknownKey(key));
        continue;
      }
      // A value that is absent has no line of its own.
      const YAML::Node& where = entry.second.IsNull() ? entry.first : entry.second;
      const std::optional<Values> values = ValuesOf(*setting, where, entry.second);
      if (!values.has_value()) continue;
      const absl::Status status = setting->set(*values, config_);
      if (!status.ok()) Problem(where, key, Message(status));
    }
  }

  absl::Status Result() const {
    return problems_.empty() ? absl::OkStatus()
                             : absl::InvalidArgumentError(absl::StrJoin(problems_, "\n"));
  }

  void Problem(const YAML::Mark& mark, std::string_view key, std::string_view what) {
    problems_.push_back(
        absl::StrCat(source_, ":", mark.line + 1, ": ", std::string(key), " ", std::string(what)));
  }

 private:
  static std::string Message(const absl::Status& status) { return std::string(status.message()); }

  void Problem(const YAML::Node& where, std::string_view key, std::string_view what) {
    Problem(where.Mark(), key, what);
  }

  // The setting's values as text; nullopt, with the problem noted, if they have the wrong form.
  std::optional<Values> ValuesOf(const Setting& setting, const YAML::Node& where,
                                 const YAML::Node& node) {
    const std::string form = setting.form == Setting::Form::kMap    ? "a mapping of NAME: PATH"
                             : setting.form == Setting::Form::kList ? "a list"
                                                                    : "one value";
    const bool fits = setting.form == Setting::Form::kMap    ? node.IsMap()
                      : setting.form == Setting::Form::kList ? node.IsSequence()
                                                             : node.IsScalar();
    if (!fits) {
      Problem(where, setting.key,
              absl::StrCat("is ", KindOf(node), ", must be ", form, ": ",
                           std::string(setting.placeholder)));
      return std::nullopt;
    }
    if (node.IsScalar()) {
      if (setting.form == Setting::Form::kNumber && IsQuoted(node)) {
        Problem(where, setting.key,
                absl::StrCat("is the text \"", node.Scalar(), "\", must be ",
                             std::string(setting.placeholder), " without quotes"));
        return std::nullopt;
      }
      return Values{node.Scalar()};
    }
    Values values;
    for (const auto& item : node) {
      const bool pair = setting.form == Setting::Form::kMap;
      const YAML::Node value = pair ? item.second : static_cast<const YAML::Node&>(item);
      if (!value.IsScalar() || (pair && !item.first.IsScalar())) {
        Problem(pair ? item.first : value, setting.key,
                absl::StrCat("has an entry that is ", KindOf(value), ", must have ", form));
        return std::nullopt;
      }
      values.push_back(pair ? absl::StrCat(item.first.Scalar(), "=", value.Scalar())
                            : value.Scalar());
    }
    return values;
  }

  const std::string source_;
  ServerConfig& config_;
  Values problems_;
};

}  // namespace

absl::Status ApplyYaml(std::string_view text, std::string_view source, ServerConfig& config) {
  Reader reader(source, config);
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1) {
      reader.Problem(documents[1].Mark(), "the file", "has a second document, must be one mapping");
    } else if (!documents.empty()) {
      reader.Read(documents.front());
    }
  } catch (const YAML::Exception& error) {
    reader.Problem(error.mark, "the file", absl::StrCat("is not YAML: ", error.msg));
  }
  return reader.Result();
}

std::string ToYaml(const ServerConfig& config) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  for (const Setting& setting : Settings()) {
    out << YAML::Key << std::string(setting.key) << YAML::Value;
    const Values values = setting.get(config);
    switch (setting.form) {
      case Setting::Form::kText:
        // Quoted, so that no value can be taken for a number, a null or a tag.
        out << YAML::DoubleQuoted << values.front();
        break;
      case Setting::Form::kNumber:
        out << values.front();
        break;
      case Setting::Form::kList:
        out << YAML::Flow << YAML::BeginSeq;
        for (const std::string& value : values) out << value;
        out << YAML::EndSeq;
        break;
      case Setting::Form::kMap:
        out << YAML::BeginMap;
        for (const std::string& value : values) {
          const size_t equals = value.find('=');
          out << YAML::Key << YAML::DoubleQuoted << value.substr(0, equals);
          out << YAML::Value << YAML::DoubleQuoted << value.substr(equals + 1);
        }
        out << YAML::EndMap;
        break;
    }
  }
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace wan::server
