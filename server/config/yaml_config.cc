#include "server/config/yaml_config.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <optional>
#include <set>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "server/config/settings.h"

namespace wan::server {
namespace {

using Values = std::vector<std::string>;

std::string UnknownKey(std::string_view key) {
  if (const Setting* const nearest = NearestSetting(key); nearest != nullptr) {
    return absl::StrCat("is not a setting; did you mean ", std::string(nearest->key), "?");
  }
  Values known;
  for (const Setting& setting : Settings()) known.push_back(std::string(setting.key));
  return absl::StrCat("is not a setting; the settings are ", absl::StrJoin(known, ", "));
}

// Returns a placeholder for the setting's value in a file, or for one entry of its list or mapping.
std::string EntryOf(const Setting& setting) {
  if (setting.form == Setting::Form::kGroups) return "{device: DEVICE, models: [MODEL]}";
  const std::string placeholder(setting.placeholder);
  return setting.form == Setting::Form::kMap ? absl::StrReplaceAll(placeholder, {{"=", ": "}})
                                             : placeholder;
}

std::string KindOf(const YAML::Node& node) {
  if (node.IsNull()) return "empty";
  if (node.IsSequence()) return "a list";
  if (node.IsMap()) return "a mapping";
  return absl::StrCat("'", node.Scalar(), "'");
}

// Returns true for a quoted scalar, which yaml-cpp marks with this tag.
bool IsQuoted(const YAML::Node& node) { return node.Tag() == "!"; }

// Records at which positions the documents of a file begin.
class DocumentStarts final : public YAML::EventHandler {
 public:
  const std::vector<YAML::Mark>& marks() const { return marks_; }

  void OnDocumentStart(const YAML::Mark& mark) override { marks_.push_back(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  std::vector<YAML::Mark> marks_;
};

// Returns the positions of the first two documents in the text. Do not use YAML::LoadAll here: it
// loops forever at an unmatched comma or closing bracket.
std::vector<YAML::Mark> FirstDocuments(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  while (starts.marks().size() < 2 && parser.HandleNextDocument(starts)) {
  }
  return starts.marks();
}

// Reads one file and collects all its problems, so that the user sees them at once.
class Reader {
 public:
  Reader(std::string_view source, ServerConfig& config) : source_(source), config_(config) {}

  void Read(const YAML::Node& root) {
    if (root.IsNull()) return;
    if (!root.IsMap()) {
      Problem(root, "the file",
              absl::StrCat("is ", KindOf(root), "; must be a mapping of settings"));
      return;
    }
    std::set<std::string> seen;
    for (const auto& entry : root) {
      if (!entry.first.IsScalar()) {
        Problem(entry.first, "a key", absl::StrCat("is ", KindOf(entry.first), "; must be a word"));
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
      // If a value is missing, yaml-cpp has no line for the value; use the line of the key.
      const YAML::Node& where = entry.second.IsNull() ? entry.first : entry.second;
      const std::optional<Values> values = ValuesOf(*setting, where, entry.second);
      if (!values.has_value()) continue;
      const absl::Status status = Apply(*setting, *values, config_);
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

  // Returns the setting's values as text; if they have the wrong form, records a problem and
  // returns nullopt.
  std::optional<Values> ValuesOf(const Setting& setting, const YAML::Node& where,
                                 const YAML::Node& node) {
    using Form = Setting::Form;
    const bool list = setting.form == Form::kList || setting.form == Form::kGroups;
    const std::string form = setting.form == Form::kMap     ? "a mapping of "
                             : list                         ? "a list of "
                             : setting.form == Form::kTexts ? "one value or a list of "
                                                            : "one value, ";
    const bool fits = setting.form == Form::kMap     ? node.IsMap()
                      : list                         ? node.IsSequence()
                      : setting.form == Form::kTexts ? node.IsScalar() || node.IsSequence()
                                                     : node.IsScalar();
    if (!fits) {
      Problem(where, setting.key,
              absl::StrCat("is ", KindOf(node), "; must be ", form, EntryOf(setting)));
      return std::nullopt;
    }
    if (node.IsScalar()) {
      if (setting.form == Setting::Form::kNumber && IsQuoted(node)) {
        Problem(where, setting.key,
                absl::StrCat("is the text \"", node.Scalar(), "\"; write ", EntryOf(setting),
                             " without quotes"));
        return std::nullopt;
      }
      return Values{node.Scalar()};
    }
    Values values;
    for (const auto& item : node) {
      if (setting.form == Form::kGroups) {
        const std::optional<std::string> group = GroupOf(setting, item);
        if (!group.has_value()) return std::nullopt;
        values.push_back(*group);
        continue;
      }
      const bool pair = setting.form == Setting::Form::kMap;
      const YAML::Node value = pair ? item.second : static_cast<const YAML::Node&>(item);
      if (const std::optional<std::string> parts = PartsOf(setting, value);
          pair && parts.has_value() && item.first.IsScalar()) {
        values.push_back(absl::StrCat(item.first.Scalar(), "=", *parts));
        continue;
      }
      if (!value.IsScalar() || (pair && !item.first.IsScalar())) {
        Problem(pair ? item.first : value, setting.key,
                absl::StrCat("has an entry that is ", KindOf(value), "; every entry must be ",
                             EntryOf(setting)));
        return std::nullopt;
      }
      values.push_back(pair ? absl::StrCat(item.first.Scalar(), "=", value.Scalar())
                            : value.Scalar());
    }
    return values;
  }

  // Converts the mapping of a model's parts to the text that stands for its path; nullopt if the
  // setting does not take such a mapping, or if this entry is not a mapping.
  static std::optional<std::string> PartsOf(const Setting& setting, const YAML::Node& node) {
    if (setting.key != "models" || !node.IsMap() || node.size() == 0) return std::nullopt;
    Values parts;
    for (const auto& part : node) {
      if (!part.first.IsScalar() || !part.second.IsScalar()) return std::nullopt;
      parts.push_back(absl::StrCat(part.first.Scalar(), "=", part.second.Scalar()));
    }
    return absl::StrJoin(parts, ",");
  }

  // Converts an entry of `groups` to a text in the form that ParseDeviceGroup reads.
  std::optional<std::string> GroupOf(const Setting& setting, const YAML::Node& node) {
    const auto refuse = [&](std::string_view what) {
      Problem(node, setting.key,
              absl::StrCat(std::string(what), "; every entry must be ", EntryOf(setting)));
      return std::nullopt;
    };
    if (!node.IsMap()) return refuse(absl::StrCat("has an entry that is ", KindOf(node)));
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : KindOf(entry.first);
      if (key != "device" && key != "models") {
        return refuse(absl::StrCat("has an entry with '", key, "'"));
      }
      if (!seen.insert(key).second) {
        return refuse(absl::StrCat("has an entry with '", key, "' twice"));
      }
    }
    const YAML::Node device = node["device"];
    if (!device || !device.IsScalar()) return refuse("has an entry without a device");
    const YAML::Node models = node["models"];
    if (!models) return device.Scalar();
    if (!models.IsSequence()) return refuse("has an entry whose models are no list");
    Values names;
    for (const auto& model : models) {
      if (!model.IsScalar() || model.Scalar().empty()) {
        return refuse("has an entry whose models are not all names");
      }
      names.push_back(model.Scalar());
    }
    if (names.empty()) return refuse("has an entry with an empty list of models");
    return absl::StrCat(device.Scalar(), "=", absl::StrJoin(names, ","));
  }

  const std::string source_;
  ServerConfig& config_;
  Values problems_;
};

}  // namespace

absl::Status ApplyYaml(std::string_view text, std::string_view source, ServerConfig& config) {
  Reader reader(source, config);
  try {
    const std::string whole(text);
    const std::vector<YAML::Mark> starts = FirstDocuments(whole);
    if (starts.size() < 2) {
      reader.Read(YAML::Load(whole));
    } else if (starts[0].pos == starts[1].pos) {
      reader.Problem(starts[0], "the file", "is not YAML: nothing can begin with what stands here");
    } else {
      reader.Problem(starts[1], "the file", "has a second document; must have one only");
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
        // Quote the value, so that no reader takes it for a number, a null or a tag.
        out << YAML::DoubleQuoted << values.front();
        break;
      case Setting::Form::kNumber:
        out << values.front();
        break;
      case Setting::Form::kTexts:
        if (values.size() == 1) {
          out << YAML::DoubleQuoted << values.front();
          break;
        }
        out << YAML::Flow << YAML::BeginSeq;
        for (const std::string& value : values) out << YAML::DoubleQuoted << value;
        out << YAML::EndSeq;
        break;
      case Setting::Form::kGroups:
        out << YAML::BeginSeq;
        for (const DeviceGroup& group : config.groups) {
          out << YAML::Flow << YAML::BeginMap << YAML::Key << "device" << YAML::Value
              << YAML::DoubleQuoted << DevicesText(group);
          if (!group.models.empty()) {
            out << YAML::Key << "models" << YAML::Value << YAML::Flow << group.models;
          }
          out << YAML::EndMap;
        }
        out << YAML::EndSeq;
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
