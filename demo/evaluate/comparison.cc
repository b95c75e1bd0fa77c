#include "demo/evaluate/comparison.h"

#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace wan::demo {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNormal95 = 1.959964;
constexpr std::array<const char*, 3> kMeasures = {"colour", "motion", "shape"};

// Mode and scene.
using Key = std::pair<std::string, std::string>;

// One clip's figures: shares of its objects, and its first frame.
struct Figures {
  size_t objects = 0;
  std::array<double, kMeasures.size()> shares{};
  double first_frame = 0;
  bool has_first_frame = false;
};

// May throw Json::exception.
std::map<Key, Figures> FiguresOf(const Json& report) {
  std::map<Key, Figures> all;
  for (const Json& clip : report.at("clips")) {
    Figures& figures = all[{clip.value("mode", "clips"), clip.at("id").get<std::string>()}];
    const Json& objects = clip.at("objects");
    figures.objects = objects.size();
    for (const Json& object : objects) {
      for (size_t i = 0; i < kMeasures.size(); ++i) {
        figures.shares[i] += object.at(kMeasures[i]).get<bool>() / double(objects.size());
      }
    }
    figures.has_first_frame = clip.contains("first_frame_psnr");
    if (figures.has_first_frame) figures.first_frame = clip.at("first_frame_psnr").get<double>();
  }
  return all;
}

// One row of the table: pairs of values.
struct Pairs {
  double a = 0;  // sums
  double b = 0;
  std::vector<double> differences;

  void Add(double in_a, double in_b) {
    a += in_a;
    b += in_b;
    differences.push_back(in_b - in_a);
  }
};

std::string RowText(const std::string& name, const Pairs& pairs, const Difference& difference,
                    double scale, const char* unit) {
  const double n = static_cast<double>(pairs.differences.size());
  return absl::StrFormat("| %s | %d | %.1f%s | %.1f%s | %+.1f (%+.1f to %+.1f)%s |\n", name,
                         pairs.differences.size(), scale * pairs.a / n, unit, scale * pairs.b / n,
                         unit, scale * difference.mean, scale * difference.low,
                         scale * difference.high, difference.certain() ? " *" : "");
}

std::string LoadRows(const Json& a, const Json& b) {
  std::string text;
  for (const auto& [key, title] : {std::pair{"videos_per_minute", "videos per minute"},
                                   std::pair{"mean_job_seconds", "mean time of a job, s"}}) {
    if (!a.contains("load") || !b.contains("load")) continue;
    const Json &load_a = a["load"], &load_b = b["load"];
    if (!load_a.contains(key) || !load_b.contains(key)) continue;
    const double in_a = load_a.at(key).get<double>(), in_b = load_b.at(key).get<double>();
    absl::StrAppend(&text, absl::StrFormat("| %s | | %.2f | %.2f | x %.3f |\n", title, in_a, in_b,
                                           in_a > 0 ? in_b / in_a : 0));
  }
  return text;
}

std::string CompareFigures(const Json& a, const Json& b, const std::map<Key, Figures>& in_a,
                           const std::map<Key, Figures>& in_b) {
  // Mode, objects, measure; the last measure is the first frame.
  std::map<std::tuple<std::string, size_t, size_t>, Pairs> rows;
  size_t paired = 0;
  for (const auto& [key, left] : in_a) {
    const auto found = in_b.find(key);
    if (found == in_b.end() || found->second.objects != left.objects) continue;
    ++paired;
    const Figures& right = found->second;
    for (size_t i = 0; i < kMeasures.size(); ++i) {
      rows[{key.first, left.objects, i}].Add(left.shares[i], right.shares[i]);
    }
    if (left.has_first_frame && right.has_first_frame) {
      rows[{key.first, left.objects, kMeasures.size()}].Add(left.first_frame, right.first_frame);
    }
  }
  if (paired == 0) return "";

  std::string text =
      "| measure | videos | A | B | B - A (95 % interval) |\n| --- | --- | --- | --- | --- |\n";
  for (const auto& [at, pairs] : rows) {
    const auto& [mode, objects, measure] = at;
    const std::string prefix =
        absl::StrCat(mode, ", ", objects == 1 ? "one object: " : "two objects: ");
    if (measure < kMeasures.size()) {
      text += RowText(absl::StrCat(prefix, kMeasures[measure]), pairs,
                      PairedShares(pairs.differences), 100, " %");
    } else if (pairs.differences.size() > 1) {
      text += RowText(absl::StrCat(prefix, "first frame"), pairs, PairedFigures(pairs.differences),
                      1, " dB");
    }
  }
  text += LoadRows(a, b);
  absl::StrAppend(&text, "\n* the interval leaves 0 out\n");
  const size_t alone = in_a.size() + in_b.size() - 2 * paired;
  if (alone > 0) absl::StrAppend(&text, alone, " videos are in one report only and do not count\n");
  return text;
}

}  // namespace

Difference PairedShares(const std::vector<double>& differences) {
  double sum = 0, squares = 1;
  for (const double difference : differences) {
    sum += difference;
    squares += difference * difference;
  }
  const double n = static_cast<double>(differences.size());
  const double adjusted = n + 2;
  const double middle = sum / adjusted;
  const double error = std::sqrt(squares - sum * sum / adjusted) / adjusted;
  return {sum / n, middle - kNormal95 * error, middle + kNormal95 * error};
}

Difference PairedFigures(const std::vector<double>& differences) {
  const double n = static_cast<double>(differences.size());
  double sum = 0, squares = 0;
  for (const double difference : differences) sum += difference;
  const double mean = sum / n;
  for (const double difference : differences) squares += (difference - mean) * (difference - mean);
  const double error = std::sqrt(squares / (n - 1) / n);
  return {mean, mean - kNormal95 * error, mean + kNormal95 * error};
}

absl::StatusOr<std::string> CompareReports(const Json& a, const Json& b) {
  try {
    if (a.at("settings").at("scenes_sha256") != b.at("settings").at("scenes_sha256")) {
      return absl::InvalidArgumentError("the two reports are of different scenes");
    }
    std::string text = CompareFigures(a, b, FiguresOf(a), FiguresOf(b));
    if (!text.empty()) return text;
    return absl::InvalidArgumentError("the two reports have no video in common");
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("this is no report of demo_evaluate: ", error.what()));
  }
}

}  // namespace wan::demo
