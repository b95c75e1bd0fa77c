// What the code, not the checkpoint, knows of a model: modes, defaults, schedule. A new family is a
// new file with a function below and one line in model_family.cc.
#pragma once

#include <string_view>
#include <vector>

#include "engine/api/generation.h"

namespace wan {

struct ModelFamily {
  std::string_view name;  // as Checkpoint::model() says it: "ti2v-5b"
  bool accepts_text_only = false;
  bool accepts_image = false;
  // Defaults of a request (upstream's configs and generate.py). negative_prompt is also what an
  // empty negative prompt becomes.
  VideoShape shape;
  int fps = 0;
  int steps = 0;
  std::vector<double> guidance_scale;  // one, or (low noise, high noise)
  double shift = 0;
  std::string_view solver;
  std::string_view negative_prompt;
};

// Null for an unknown name.
const ModelFamily* FindModelFamily(std::string_view name);

// One function a family, each in the file of its name.
const ModelFamily& Ti2v5bFamily();

}  // namespace wan
