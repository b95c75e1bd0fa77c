// What was seen against what was asked for.
#pragma once

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "demo/evaluate/detector.h"
#include "demo/evaluate/psnr.h"
#include "demo/evaluate/scenes.h"

namespace wan::demo {

// Of one expected object. All false, and `seen` default, if the clip has no object left for it.
struct ObjectScore {
  bool colour = false;
  bool motion = false;
  bool shape = false;
  SeenObject seen;
};

struct SceneScore {
  std::vector<ObjectScore> objects;  // in the scene's order
  bool background = false;
  bool count = false;  // as many objects as expected
};

// Gives every expected object one of those seen so that the most colours are right; of equal ways
// the one with the most sides, shapes and motions right.
SceneScore ScoreScene(const Scene& scene, const Sight& sight);

// `right` of `of`.
struct Share {
  int right = 0;
  int of = 0;

  void Add(bool is_right) {
    right += is_right;
    ++of;
  }
  double value() const { return of == 0 ? 0 : double(right) / of; }
};

// Expected and seen name -> times.
using Confusion = std::map<std::pair<std::string, std::string>, int>;

// Over all scenes with one number of objects.
struct Tally {
  int scenes = 0;
  Share background;  // a scene each
  Share count;
  Share colour;  // an object each
  Share motion;
  Share shape;
  Confusion colours;
  Confusion motions;
  Confusion shapes;
  // Overlaps of the outlines that were seen, of all frames, and of each object's first and last.
  std::vector<double> outlines;
  std::vector<double> first_outlines;
  std::vector<double> last_outlines;
  // By name: "psnr", "first_frame".
  std::map<std::string, Decibels> levels;

  void Add(const Scene& scene, const SceneScore& score);
};

// [0]: scenes with one object, [1]: with two.
using Tallies = std::array<Tally, 2>;

// The one that counts `scene`.
Tally& TallyOf(Tallies& tallies, const Scene& scene);

void AddTo(Tallies& tallies, const Scene& scene, const SceneScore& score);

// The value that this share (0 to 1) of `values` is below; 0 of none.
double Quantile(std::vector<double> values, double share);

// By what a scene tries (Scene::groups).
using GroupTallies = std::map<std::string, Tallies>;

// Adds to the tallies of each of the scene's groups.
void AddTo(GroupTallies& groups, const Scene& scene, const SceneScore& score);

// {GROUP: what ToJson makes of its tallies, without the confusions}
nlohmann::ordered_json ToJson(const GroupTallies& groups);

// {"one": {"scenes", "colour": {"right", "of", "share"}, ..., "outline": {"frames", "median",
// "tenth" (a tenth of the frames is below), "first", "last" (means)}, LEVEL: {"mean_db",
// "worst_db"}, ...,
// "confusion": {"shape": {expected: {seen: times}}, ...}}, "two": ...}; a number of objects without
// scenes is left out.
nlohmann::ordered_json ToJson(const Tallies& tallies);

// {"objects": [{"colour", "motion", "shape", "seen": {...}}], "background", "count"}
nlohmann::ordered_json ToJson(const SceneScore& score);

// Lines for a terminal.
std::string ToText(const Tallies& tallies);

}  // namespace wan::demo
