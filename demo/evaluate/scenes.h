// The captions that an evaluation runs, and what each of them asks for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wan::demo {

struct ExpectedObject {
  std::string colour;
  std::string shape;
  std::string motion;
  std::string side;  // "left" or "right"
};

struct Scene {
  std::string id;  // unique in the file; letters, digits, '-', '_' and '.'
  std::string caption;
  std::string background;
  std::vector<ExpectedObject> objects;  // one or two
  std::string image;                    // file name of the first frame; may be empty
  std::string negative_prompt;          // may be empty: the model's own
  // What differs from the run's settings; 0 where nothing does.
  int width = 0;
  int height = 0;
  int frames = 0;
  // What the scene tries ("capitals", "white background"): the report counts each apart, too.
  std::vector<std::string> groups;
};

struct SceneFile {
  std::vector<Scene> scenes;
  std::string sha256;  // of its lines, lower-case hex
};

// A file with one JSON object a line, as demo/train/write_scenes.py makes it:
//   {"id", "caption", "background", "objects": [{"shape", "colour", "motion", "size", "side"}],
//    "image", "negative_prompt", "width", "height", "frames", "groups": [...]}
// Errors name file and line: NOT_FOUND, INVALID_ARGUMENT for a line that is not of this form, names
// that are not the vocabulary's, an id that is there twice, and a file without scenes.
absl::StatusOr<SceneFile> ReadScenes(const std::string& path);

}  // namespace wan::demo
