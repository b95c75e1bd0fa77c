#include "client/wanctl/bench_cases.h"

#include <yaml-cpp/yaml.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "client/reports/run.h"
#include "client/wanctl/request_fields.h"
#include "client/wanctl/values.h"

namespace wan::client {
namespace {

constexpr int64_t kSeed = 42;

using Request = wan::v1::GenerationRequest;

class Reader {
 public:
  explicit Reader(const std::string& source) : source_(source) {}

  absl::StatusOr<std::vector<BenchCase>> Read(const YAML::Node& root) {
    if (!root.IsMap()) return Wrong("", "must have a list 'cases'");
    for (const auto& entry : root) {
      const std::string key = entry.first.as<std::string>();
      if (key != "cases" && key != "defaults") {
        return Wrong("",
                     absl::StrCat("has the key '", key, "'; it may have 'defaults' and 'cases'"));
      }
    }
    if (!root["cases"] || !root["cases"].IsSequence() || root["cases"].size() == 0) {
      return Wrong("", "must have a list 'cases' with at least one case");
    }
    BenchCase defaults;
    defaults.request.set_seed(kSeed);
    if (root["defaults"]) {
      if (!root["defaults"].IsMap()) return Wrong("defaults", "must be a map of keys and values");
      for (const auto& entry : root["defaults"]) {
        absl::Status status =
            Apply("defaults", entry.first.as<std::string>(), entry.second, defaults.request);
        if (!status.ok()) return status;
      }
    }
    std::vector<BenchCase> cases;
    std::set<std::string> names;
    for (const YAML::Node& node : root["cases"]) {
      absl::StatusOr<BenchCase> read = ReadCase(node, defaults, cases.size() + 1);
      if (!read.ok()) return read.status();
      if (!names.insert(read->name).second) {
        return Wrong(read->name, "is given twice; must be a name that no other case has");
      }
      cases.push_back(*std::move(read));
    }
    return cases;
  }

 private:
  absl::StatusOr<BenchCase> ReadCase(const YAML::Node& node, const BenchCase& defaults,
                                     size_t number) {
    const std::string place = absl::StrCat("case ", number);
    if (!node.IsMap()) return Wrong(place, "must be a map of keys and values");
    BenchCase read = defaults;
    if (!node["name"] || !node["name"].IsScalar() || node["name"].as<std::string>().empty()) {
      return Wrong(place, "has no name");
    }
    read.name = node["name"].as<std::string>();
    for (const auto& entry : node) {
      const std::string key = entry.first.as<std::string>();
      if (key == "name" || key == "original" || key == "options") continue;
      if (key == "image") {
        read.image_path = entry.second.as<std::string>();
        if (read.image_path.empty()) return Wrong(read.name, "has an empty image; must be FILE");
        continue;
      }
      absl::Status status = Apply(read.name, key, entry.second, read.request);
      if (!status.ok()) return status;
    }
    if (read.request.prompt().empty()) return Wrong(read.name, "has no prompt");
    if (read.request.model().empty()) return Wrong(read.name, "has no model");
    read.original = {reports::kOriginalVariant, read.request};
    if (node["original"]) {
      absl::Status status = ApplyAll(read.name, node["original"], read.original);
      if (!status.ok()) return status;
    }
    if (node["options"] && !node["options"].IsMap()) {
      return Wrong(read.name, "must have a map as 'options': names, and what each one changes");
    }
    for (const auto& entry : node["options"]) {
      BenchVariant option{entry.first.as<std::string>(), read.request};
      if (option.name == reports::kOriginalVariant) {
        return Wrong(read.name,
                     "has an option 'original'; upstream's settings are the key 'original' of the "
                     "case, beside 'options'");
      }
      absl::Status status = ApplyAll(read.name, entry.second, option);
      if (!status.ok()) return status;
      read.options.push_back(std::move(option));
    }
    return read;
  }

  absl::Status ApplyAll(const std::string& name, const YAML::Node& node, BenchVariant& variant) {
    if (!node.IsMap())
      return Wrong(name, "must have a map of keys and values in 'original' and in each option");
    for (const auto& entry : node) {
      const std::string key = entry.first.as<std::string>();
      if (key == "warm_up") {
        const absl::StatusOr<bool> warm = ParseBool(entry.second.as<std::string>());
        if (!warm.ok())
          return Wrong(name, absl::StrCat(key, " ", std::string(warm.status().message())));
        variant.cold = !*warm;
        continue;
      }
      absl::Status status = Apply(name, key, entry.second, variant.request);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Apply(const std::string& name, const std::string& key, const YAML::Node& value,
                     Request& request) {
    const auto found = RequestFields().find(key);
    if (found == RequestFields().end()) {
      std::string keys;
      for (const auto& [known, setter] : RequestFields())
        absl::StrAppend(&keys, keys.empty() ? "" : ", ", known);
      return Wrong(name, absl::StrCat("has the key '", key,
                                      "'; the keys are name, image, original, options, ", keys));
    }
    if (!value.IsScalar()) return Wrong(name, absl::StrCat(key, " must be a single value"));
    absl::Status status = found->second(value.as<std::string>(), request);
    if (status.ok()) return status;
    return Wrong(name, absl::StrCat(key, " ", std::string(status.message())));
  }

  absl::Status Wrong(const std::string& place, const std::string& what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(source_, ": ", place.empty() ? "" : absl::StrCat(place, ": "), what));
  }

  const std::string& source_;
};

}  // namespace

absl::StatusOr<std::vector<BenchCase>> ParseBenchCases(const std::string& yaml,
                                                       const std::string& source) {
  try {
    return Reader(source).Read(YAML::Load(yaml));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(source, " is not YAML: ", error.what()));
  }
}

}  // namespace wan::client
