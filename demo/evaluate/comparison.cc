#include "demo/evaluate/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace wan::demo {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNormal95 = 1.959964;

enum class MeasureOf {
  kObjects,  // the share of the clip's objects that are right
  kClip,     // whether the clip is right or wrong
  kLevel,    // a level in dB
};

struct Measure {
  const char* key;
  const char* title;
  MeasureOf of;

  bool share() const { return of != MeasureOf::kLevel; }
};
constexpr std::array<Measure, 7> kMeasures = {
    {{"colour", "colour", MeasureOf::kObjects},
     {"motion", "motion", MeasureOf::kObjects},
     {"shape", "shape", MeasureOf::kObjects},
     {"background", "background", MeasureOf::kClip},
     {"count", "count", MeasureOf::kClip},
     {"first_frame_psnr", "first frame", MeasureOf::kLevel},
     {"psnr", "PSNR", MeasureOf::kLevel}}};

// The mode and the id of a scene.
using Key = std::pair<std::string, std::string>;

struct Figures {
  size_t objects = 0;
  std::array<std::optional<double>, kMeasures.size()> values;
};

// Returns the value that the measure has for one clip; nothing if the clip lacks it. It may throw
// Json::exception.
std::optional<double> ValueOf(const Json& clip, const Measure& measure) {
  if (measure.of != MeasureOf::kObjects) {
    if (!clip.contains(measure.key)) return std::nullopt;
    const Json& value = clip.at(measure.key);
    if (measure.of == MeasureOf::kLevel) return value.get<double>();
    return value.get<bool>() ? 1 : 0;
  }
  const Json& objects = clip.at("objects");
  const auto right = std::count_if(objects.begin(), objects.end(), [&](const Json& object) {
    return object.at(measure.key).get<bool>();
  });
  return double(right) / double(objects.size());
}

std::map<Key, Figures> FiguresOf(const Json& report) {
  std::map<Key, Figures> all;
  for (const Json& clip : report.at("clips")) {
    Figures& figures = all[{clip.value("mode", "clips"), clip.at("id").get<std::string>()}];
    figures.objects = clip.at("objects").size();
    for (size_t i = 0; i < kMeasures.size(); ++i) figures.values[i] = ValueOf(clip, kMeasures[i]);
  }
  return all;
}

// One row of the table, made from pairs of values.
struct Pairs {
  double a = 0;  // sum of the first values
  double b = 0;
  std::vector<double> differences;
  std::vector<std::string> better;  // ids of the scenes that got better
  std::vector<std::string> worse;

  void Add(const std::string& scene, double in_a, double in_b) {
    a += in_a;
    b += in_b;
    differences.push_back(in_b - in_a);
    if (in_b > in_a) better.push_back(scene);
    if (in_b < in_a) worse.push_back(scene);
  }
};

// The key is the mode, the number of objects and the index of the measure.
using Rows = std::map<std::tuple<std::string, size_t, size_t>, Pairs>;

std::string TitleOf(const Rows::key_type& at) {
  const auto& [mode, objects, measure] = at;
  return absl::StrCat(mode, ", ",
                      objects == 1 ? "one object: " : "two objects: ", kMeasures[measure].title);
}

std::string RowText(const Rows::key_type& at, const Pairs& pairs) {
  const bool share = kMeasures[std::get<2>(at)].share();
  const Difference difference =
      share ? PairedShares(pairs.differences) : PairedFigures(pairs.differences);
  const double scale = share ? 100 : 1;
  const char* const unit = share ? " %" : " dB";
  const double n = static_cast<double>(pairs.differences.size());
  return absl::StrFormat("| %s | %d | %.1f%s | %.1f%s | %+.1f (%+.1f to %+.1f)%s | %d | %d |\n",
                         TitleOf(at), pairs.differences.size(), scale * pairs.a / n, unit,
                         scale * pairs.b / n, unit, scale * difference.mean, scale * difference.low,
                         scale * difference.high, difference.certain() ? " *" : "",
                         pairs.better.size(), pairs.worse.size());
}

std::string LoadRows(const Json& a, const Json& b) {
  std::string text;
  for (const auto& [key, title] : {std::pair{"videos_per_minute", "videos per minute"},
                                   std::pair{"mean_job_seconds", "mean time of a job, s"}}) {
    if (!a.contains("load") || !b.contains("load")) continue;
    const Json &load_a = a["load"], &load_b = b["load"];
    if (!load_a.contains(key) || !load_b.contains(key)) continue;
    const double in_a = load_a.at(key).get<double>(), in_b = load_b.at(key).get<double>();
    absl::StrAppend(&text, absl::StrFormat("| %s | | %.2f | %.2f | x %.3f | | |\n", title, in_a,
                                           in_b, in_a > 0 ? in_b / in_a : 0));
  }
  return text;
}

// Lists the clips that a measure judges differently; a level in dB does not count, because it is
// never quite the same.
std::string ChangedClips(const Rows& rows) {
  std::string text;
  for (const auto& [at, pairs] : rows) {
    if (!kMeasures[std::get<2>(at)].share()) continue;
    for (const auto& [word, scenes] :
         {std::pair{"better", &pairs.better}, std::pair{"worse", &pairs.worse}}) {
      if (scenes->empty()) continue;
      absl::StrAppend(&text, "- ", TitleOf(at), ", ", word, ": ", absl::StrJoin(*scenes, ", "),
                      "\n");
    }
  }
  return text.empty() ? "No clip is judged otherwise.\n" : "Clips judged otherwise:\n\n" + text;
}

std::string CompareFigures(const Json& a, const Json& b, const std::map<Key, Figures>& in_a,
                           const std::map<Key, Figures>& in_b) {
  Rows rows;
  size_t paired = 0;
  for (const auto& [key, left] : in_a) {
    const auto found = in_b.find(key);
    if (found == in_b.end() || found->second.objects != left.objects) continue;
    ++paired;
    const Figures& right = found->second;
    for (size_t i = 0; i < kMeasures.size(); ++i) {
      if (!left.values[i] || !right.values[i]) continue;
      rows[{key.first, left.objects, i}].Add(key.second, *left.values[i], *right.values[i]);
    }
  }
  if (paired == 0) return "";

  std::string text =
      "| measure | videos | A | B | B - A (95 % interval) | better | worse |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const auto& [at, pairs] : rows) text += RowText(at, pairs);
  text += LoadRows(a, b);
  absl::StrAppend(&text, "\n* the interval leaves 0 out\n");
  const size_t alone = in_a.size() + in_b.size() - 2 * paired;
  if (alone > 0) absl::StrAppend(&text, alone, " videos are in one report only and do not count\n");
  return absl::StrCat(text, "\n", ChangedClips(rows));
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
  return {sum / n, std::max(-1.0, middle - kNormal95 * error),
          std::min(1.0, middle + kNormal95 * error)};
}

Difference PairedFigures(const std::vector<double>& differences) {
  const double n = static_cast<double>(differences.size());
  double sum = 0, squares = 0;
  for (const double difference : differences) sum += difference;
  const double mean = sum / n;
  for (const double difference : differences) squares += (difference - mean) * (difference - mean);
  const double error =
      n > 1 ? std::sqrt(squares / (n - 1) / n) : std::numeric_limits<double>::infinity();
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
