// In this folder, only this file and render_json.cc include nlohmann/json, which takes seconds to
// compile.
#include "client/reports/ceilings_file.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace wan::client::reports {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "wanserve-ceilings";
constexpr int kVersion = 1;

}  // namespace

double RateOf(const std::map<std::string, double>& rates, const std::string& precision) {
  const auto found = rates.find(precision);
  return found == rates.end() ? 0 : found->second;
}

std::string ToJson(const Ceilings& ceilings, const std::vector<std::string>& rows) {
  Json json = {{"format", kFormat},
               {"version", kVersion},
               {"device", ceilings.device},
               {"software", ceilings.software},
               {"measured_at", ceilings.measured_at},
               {"seconds_each", ceilings.seconds_each},
               {"products_flop_per_second", ceilings.products},
               {"attention_flop_per_second", ceilings.attention},
               {"memory_bytes_per_second", ceilings.memory}};
  if (ceilings.upload > 0) json["upload_bytes_per_second"] = ceilings.upload;
  if (ceilings.download > 0) json["download_bytes_per_second"] = ceilings.download;
  json["rows"] = Json::array();
  for (const std::string& row : rows) json["rows"].push_back(Json::parse(row));
  return json.dump(1);
}

absl::StatusOr<Ceilings> ParseCeilings(std::string_view json, const std::string& name) {
  const auto refused = [&name](const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has no ceilings: ", why,
                     "; 'wan_bench ceilings --output FILE' writes such a file"));
  };
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return refused("it is not a JSON object");
  if (root.value("format", Json()) != kFormat || root.value("version", Json()) != kVersion) {
    return refused(absl::StrCat("its format is not ", kFormat, " of version ", kVersion));
  }
  Ceilings ceilings;
  std::string field;
  try {
    const auto read = [&](const char* key, auto& value) {
      field = key;
      root.at(key).get_to(value);
    };
    const auto read_if_given = [&](const char* key, auto& value) {
      if (root.contains(key)) read(key, value);
    };
    read("device", ceilings.device);
    read_if_given("software", ceilings.software);
    read("measured_at", ceilings.measured_at);
    read_if_given("seconds_each", ceilings.seconds_each);
    read("products_flop_per_second", ceilings.products);
    read("attention_flop_per_second", ceilings.attention);
    read("memory_bytes_per_second", ceilings.memory);
    read_if_given("upload_bytes_per_second", ceilings.upload);
    read_if_given("download_bytes_per_second", ceilings.download);
  } catch (const Json::exception&) {
    return refused(absl::StrCat("its field ", field, " is missing or of another type"));
  }
  return ceilings;
}

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file) return std::nullopt;
  // Opening a folder succeeds, but reading it fails. `<<` fails if it has nothing to write, as with
  // an empty file.
  const bool empty = file.peek() == std::ifstream::traits_type::eof() && !file.bad();
  if (!empty && !(text << file.rdbuf())) return std::nullopt;
  return text.str();
}

absl::StatusOr<Ceilings> ReadCeilings(const std::string& path) {
  const std::optional<std::string> text = ReadFile(path);
  if (!text.has_value()) {
    return absl::NotFoundError(absl::StrCat(
        path,
        " cannot be read; 'wan_bench ceilings --output FILE' measures this machine's ceilings"));
  }
  return ParseCeilings(*text, path);
}

}  // namespace wan::client::reports
