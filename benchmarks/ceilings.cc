#include "benchmarks/ceilings.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wan {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "wanserve-ceilings";
constexpr int kVersion = 1;

// Adds the seconds to `sum`; returns false if the rate is needed and unknown.
bool AddSeconds(double amount, double rate, double& sum) {
  if (amount <= 0) return true;
  if (rate <= 0) return false;
  sum += amount / rate;
  return true;
}

double RateOf(const std::map<std::string, double>& rates, const std::string& precision) {
  const auto found = rates.find(precision);
  return found == rates.end() ? 0 : found->second;
}

}  // namespace

std::optional<double> Ceilings::FloorSeconds(const Work& work) const {
  double computing = 0;
  double moving = 0;
  double uploading = 0;
  double downloading = 0;
  const bool known =
      AddSeconds(work.product_flop, RateOf(products, work.precision), computing) &&
      AddSeconds(work.attention_flop, RateOf(attention, work.precision), computing) &&
      AddSeconds(work.bytes, memory, moving) && AddSeconds(work.upload_bytes, upload, uploading) &&
      AddSeconds(work.download_bytes, download, downloading);
  const double floor = std::max({computing, moving, uploading, downloading});
  return known && floor > 0 ? std::optional(floor) : std::nullopt;
}

std::string ToJson(const Ceilings& ceilings, const std::vector<BenchRow>& rows) {
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
  for (const BenchRow& row : rows) json["rows"].push_back(Json::parse(ToJsonLine(row)));
  return json.dump(1);
}

absl::StatusOr<Ceilings> ReadCeilings(const std::string& path) {
  std::ifstream file(path);
  if (!file.good()) {
    return absl::NotFoundError(
        absl::StrCat("cannot read '", path, "'; `wan_bench ceilings --output ", path,
                     "` measures the ceilings of this machine and writes them there"));
  }
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  const auto refused = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' has no ceilings: ", why));
  };
  if (!json.is_object()) return refused("it is not a JSON object");
  if (json.value("format", Json()) != kFormat || json.value("version", Json()) != kVersion) {
    return refused(absl::StrCat("its format is not ", kFormat, " of version ", kVersion));
  }
  Ceilings ceilings;
  std::string field;
  try {
    const auto read = [&](const char* name, auto& value) {
      field = name;
      json.at(name).get_to(value);
    };
    read("device", ceilings.device);
    read("software", ceilings.software);
    read("measured_at", ceilings.measured_at);
    read("seconds_each", ceilings.seconds_each);
    read("products_flop_per_second", ceilings.products);
    read("attention_flop_per_second", ceilings.attention);
    read("memory_bytes_per_second", ceilings.memory);
    if (json.contains("upload_bytes_per_second")) {
      read("upload_bytes_per_second", ceilings.upload);
    }
    if (json.contains("download_bytes_per_second")) {
      read("download_bytes_per_second", ceilings.download);
    }
  } catch (const Json::exception&) {
    return refused(absl::StrCat("its field ", field, " is missing or of another type"));
  }
  return ceilings;
}

absl::Status WriteCeilings(const std::string& path, const Ceilings& ceilings,
                           const std::vector<BenchRow>& rows) {
  std::ofstream file(path, std::ios::trunc);
  file << ToJson(ceilings, rows) << std::endl;
  return file.good() ? absl::OkStatus()
                     : absl::UnavailableError(absl::StrCat("cannot write '", path, "'"));
}

}  // namespace wan
