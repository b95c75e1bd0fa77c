#include "demo/evaluate/scores.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace wan::demo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 2> kCounts = {"one", "two"};

// A right colour counts more than everything else together.
int Likeness(const ExpectedObject& expected, const SeenObject& seen) {
  return 100 * (expected.colour == seen.colour) + (expected.side == seen.side) +
         (expected.shape == seen.shape) + (expected.motion == seen.motion);
}

ObjectScore ScoreObject(const ExpectedObject& expected, const SeenObject& seen) {
  return {expected.colour == seen.colour, expected.motion == seen.motion,
          expected.shape == seen.shape, seen};
}

Json ShareJson(const Share& share) {
  return {{"right", share.right}, {"of", share.of}, {"share", share.value()}};
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / double(values.size());
}

Json OutlineJson(const Tally& tally) {
  return {{"frames", tally.outlines.size()},
          {"median", Quantile(tally.outlines, 0.5)},
          {"tenth", Quantile(tally.outlines, 0.1)},
          {"first", Mean(tally.first_outlines)},
          {"last", Mean(tally.last_outlines)}};
}

Json ConfusionJson(const Confusion& confusion) {
  Json json = Json::object();
  for (const auto& [names, times] : confusion) json[names.first][names.second] = times;
  return json;
}

}  // namespace

double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto place =
      std::min(values.size() - 1, static_cast<size_t>(share * double(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(place),
                   values.end());
  return values[place];
}

SceneScore ScoreScene(const Scene& scene, const Sight& sight) {
  SceneScore score{.objects = std::vector<ObjectScore>(scene.objects.size()),
                   .background = scene.background == sight.background,
                   .count = scene.objects.size() == sight.objects.size()};
  // Says which seen object each expected one gets; an index beyond the seen objects means none.
  std::vector<size_t> places(std::max(scene.objects.size(), sight.objects.size()));
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  int most = -1;
  do {
    int likeness = 0;
    for (size_t i = 0; i < scene.objects.size(); ++i) {
      if (places[i] < sight.objects.size()) {
        likeness += Likeness(scene.objects[i], sight.objects[places[i]]);
      }
    }
    if (likeness <= most) continue;
    most = likeness;
    for (size_t i = 0; i < scene.objects.size(); ++i) {
      score.objects[i] = places[i] < sight.objects.size()
                             ? ScoreObject(scene.objects[i], sight.objects[places[i]])
                             : ObjectScore();
    }
  } while (std::next_permutation(places.begin(), places.end()));
  return score;
}

void Tally::Add(const Scene& scene, const SceneScore& score) {
  auto name = [](const std::string& seen) { return seen.empty() ? std::string("nothing") : seen; };
  ++scenes;
  background.Add(score.background);
  count.Add(score.count);
  for (size_t i = 0; i < scene.objects.size(); ++i) {
    const ExpectedObject& expected = scene.objects[i];
    const ObjectScore& object = score.objects[i];
    colour.Add(object.colour);
    motion.Add(object.motion);
    shape.Add(object.shape);
    if (const std::vector<double>& outline = object.seen.outline; !outline.empty()) {
      outlines.insert(outlines.end(), outline.begin(), outline.end());
      first_outlines.push_back(outline.front());
      last_outlines.push_back(outline.back());
    }
    ++colours[{expected.colour, name(object.seen.colour)}];
    ++motions[{expected.motion, name(object.seen.motion)}];
    ++shapes[{expected.shape, name(object.seen.shape)}];
  }
}

Tally& TallyOf(Tallies& tallies, const Scene& scene) { return tallies[scene.objects.size() - 1]; }

void AddTo(Tallies& tallies, const Scene& scene, const SceneScore& score) {
  TallyOf(tallies, scene).Add(scene, score);
}

Json ToJson(const Tallies& tallies) {
  Json json = Json::object();
  for (size_t i = 0; i < tallies.size(); ++i) {
    const Tally& tally = tallies[i];
    if (tally.scenes == 0) continue;
    Json part = {{"scenes", tally.scenes},
                 {"colour", ShareJson(tally.colour)},
                 {"motion", ShareJson(tally.motion)},
                 {"shape", ShareJson(tally.shape)},
                 {"background", ShareJson(tally.background)},
                 {"count", ShareJson(tally.count)},
                 {"outline", OutlineJson(tally)}};
    for (const auto& [name, level] : tally.levels) {
      part[name] = {{"mean_db", level.mean()}, {"worst_db", level.worst}};
    }
    part["confusion"] = {{"colour", ConfusionJson(tally.colours)},
                         {"motion", ConfusionJson(tally.motions)},
                         {"shape", ConfusionJson(tally.shapes)}};
    json[kCounts[i]] = std::move(part);
  }
  return json;
}

void AddTo(GroupTallies& groups, const Scene& scene, const SceneScore& score) {
  for (const std::string& group : scene.groups) AddTo(groups[group], scene, score);
}

Json ToJson(const GroupTallies& groups) {
  Json json = Json::object();
  for (const auto& [name, tallies] : groups) {
    json[name] = ToJson(tallies);
    for (Json& part : json[name]) part.erase("confusion");
  }
  return json;
}

Json ToJson(const SceneScore& score) {
  Json objects = Json::array();
  for (const ObjectScore& object : score.objects) {
    Json json = {{"colour", object.colour}, {"motion", object.motion}, {"shape", object.shape}};
    if (!object.seen.colour.empty()) {
      json["seen"] = {{"colour", object.seen.colour},       {"motion", object.seen.motion},
                      {"shape", object.seen.shape},         {"side", object.seen.side},
                      {"shape_fit", object.seen.shape_fit}, {"presence", object.seen.presence}};
      // The list is empty if no frame shows the whole object.
      if (!object.seen.outline.empty()) {
        json["seen"]["outline_median"] = Quantile(object.seen.outline, 0.5);
        json["seen"]["outline_tenth"] = Quantile(object.seen.outline, 0.1);
      }
    }
    objects.push_back(std::move(json));
  }
  return {
      {"objects", std::move(objects)}, {"background", score.background}, {"count", score.count}};
}

std::string ToText(const Tallies& tallies) {
  std::string text = absl::StrFormat("%-8s %7s %8s %8s %8s %12s %8s\n", "objects", "scenes",
                                     "colour %", "motion %", "shape %", "background %", "count %");
  for (size_t i = 0; i < tallies.size(); ++i) {
    const Tally& tally = tallies[i];
    if (tally.scenes == 0) continue;
    absl::StrAppend(
        &text, absl::StrFormat("%-8s %7d %8.1f %8.1f %8.1f %12.1f %8.1f\n", kCounts[i],
                               tally.scenes, 100 * tally.colour.value(), 100 * tally.motion.value(),
                               100 * tally.shape.value(), 100 * tally.background.value(),
                               100 * tally.count.value()));
  }
  for (size_t i = 0; i < tallies.size(); ++i) {
    if (tallies[i].outlines.empty()) continue;
    absl::StrAppend(
        &text, absl::StrFormat("%-8s outlines: median %.3f, a tenth below %.3f, first frame %.3f, "
                               "last %.3f\n",
                               kCounts[i], Quantile(tallies[i].outlines, 0.5),
                               Quantile(tallies[i].outlines, 0.1), Mean(tallies[i].first_outlines),
                               Mean(tallies[i].last_outlines)));
  }
  for (size_t i = 0; i < tallies.size(); ++i) {
    for (const auto& [name, level] : tallies[i].levels) {
      absl::StrAppend(&text, absl::StrFormat("%-8s %s %.2f dB, worst %.2f\n", kCounts[i], name,
                                             level.mean(), level.worst));
    }
  }
  return text;
}

}  // namespace wan::demo
