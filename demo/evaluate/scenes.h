// Reads the captions that an evaluation uses, and what each of them asks for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wan::demo {

struct ExpectedObject {
  std::string colour;
  std::string shape;
  std::string motion;
  std::string side;  // the side of the object: "left" or "right"
};

struct Scene {
  std::string id;  // unique in the file; has letters, digits, '-', '_' and '.'
  std::string caption;
  std::string background;
  std::vector<ExpectedObject> objects;  // one or two objects
  std::string image;                    // name of the file with the first frame; may be empty
  std::string negative_prompt;          // empty: the negative prompt of the model
  // Where the scene differs from the run's settings; 0: no difference.
  int width = 0;
  int height = 0;
  int frames = 0;
  // What the scene tests ("capitals", "white background"); the report also counts each group on its
  // own.
  std::vector<std::string> groups;
};

struct SceneFile {
  std::vector<Scene> scenes;
  std::string sha256;  // SHA-256 of the file's lines, in lower-case hex
};

// Reads a file that has a JSON object in each line, as demo/train/write_scenes.py makes it:
//   {"id", "caption", "background", "objects": [{"shape", "colour", "motion", "size", "side"}],
//    "image", "negative_prompt", "width", "height", "frames", "groups": [...]}
// Error messages name file and line. Fails with NOT_FOUND; with INVALID_ARGUMENT for a line that
// does not have this form, for names that the vocabulary lacks, for an id that occurs twice, and
// for a file without scenes.
absl::StatusOr<SceneFile> ReadScenes(const std::string& path);

}  // namespace wan::demo
