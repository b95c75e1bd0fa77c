// Compares what was seen with what was asked for.
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

// Says what is right about one expected object. If no seen object is left for it, all members are
// false and `seen` has its default.
struct ObjectScore {
  bool colour = false;
  bool motion = false;
  bool shape = false;
  SeenObject seen;
};

struct SceneScore {
  std::vector<ObjectScore> objects;  // the objects in the order of the scene
  bool background = false;
  bool count = false;  // whether as many objects were seen as were expected
};

// Gives each expected object one of the seen ones so that as many colours as possible are right; of
// equal ways, takes the one in which the most sides, shapes and motions are right.
SceneScore ScoreScene(const Scene& scene, const Sight& sight);

// `right` objects or scenes out of `of`.
struct Share {
  int right = 0;
  int of = 0;

  void Add(bool is_right) {
    right += is_right;
    ++of;
  }
  double value() const { return of == 0 ? 0 : double(right) / of; }
};

// The key is the expected and the seen name, the value how often this pair occurred.
using Confusion = std::map<std::pair<std::string, std::string>, int>;

// Counts over all scenes that have the same number of objects.
struct Tally {
  int scenes = 0;
  Share background;  // counts scenes
  Share count;
  Share colour;  // counts objects
  Share motion;
  Share shape;
  Confusion colours;
  Confusion motions;
  Confusion shapes;
  // Overlaps of the outlines that were seen: of all frames, and of the first and the last frame of
  // each object.
  std::vector<double> outlines;
  std::vector<double> first_outlines;
  std::vector<double> last_outlines;
  // The keys are "psnr" and "first_frame".
  std::map<std::string, Decibels> levels;

  void Add(const Scene& scene, const SceneScore& score);
};

// Element 0 is for scenes with one object, element 1 for scenes with two.
using Tallies = std::array<Tally, 2>;

// Returns the tally that counts `scene`.
Tally& TallyOf(Tallies& tallies, const Scene& scene);

void AddTo(Tallies& tallies, const Scene& scene, const SceneScore& score);

// Returns the value below which this share (0 to 1) of `values` lies; 0 if there are no values.
double Quantile(std::vector<double> values, double share);

// The key is what a scene tests (Scene::groups).
using GroupTallies = std::map<std::string, Tallies>;

// Adds the scene to the tallies of each of its groups.
void AddTo(GroupTallies& groups, const Scene& scene, const SceneScore& score);

// Returns {GROUP: what ToJson makes of its tallies, without the confusions}.
nlohmann::ordered_json ToJson(const GroupTallies& groups);

// Returns {"one": {"scenes", "colour": {"right", "of", "share"}, ..., "outline": {"frames",
// "median", "tenth" (a tenth of the frames is below), "first", "last" (means)}, LEVEL: {"mean_db",
// "worst_db"}, ..., "confusion": {"shape": {expected: {seen: times}}, ...}}, "two": ...}; a number
// of objects without scenes is left out.
nlohmann::ordered_json ToJson(const Tallies& tallies);

// Returns {"objects": [{"colour", "motion", "shape", "seen": {...}}], "background", "count"}.
nlohmann::ordered_json ToJson(const SceneScore& score);

// Returns lines for a terminal.
std::string ToText(const Tallies& tallies);

}  // namespace wan::demo
