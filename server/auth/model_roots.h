// Where models and LoRAs that callers name may lie.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/errors.h"

namespace wan::server {

// Thread-safe, immutable.
class ModelRoots {
 public:
  // Anywhere.
  ModelRoots() = default;
  // Below these folders; without any, nowhere.
  explicit ModelRoots(std::vector<std::string> roots);

  // The paths of the spec that do not lie below a root by their text alone: no file is looked at,
  // so the answer tells nothing of the files that there are. "synthetic:FAMILY" lies nowhere and is
  // always right.
  std::vector<FieldViolation> Check(const ModelSpec& spec) const;

  // The spec with every path replaced by the real path of the file or folder, so that no link on
  // the way can be exchanged later. INVALID_ARGUMENT with a violation for each path that Check
  // refuses, that does not exist, that a link leads out of the roots, or below which there is a
  // link out of the roots, or anything else than folders and regular files. Reads folders: blocks.
  absl::StatusOr<ModelSpec> Resolve(ModelSpec spec) const;

 private:
  bool Contain(const std::string& path) const;
  // What is wrong with the path, or nothing and its real path.
  std::optional<std::string> ResolvePath(const std::string& path, std::string* real) const;

  bool anywhere_ = true;
  std::vector<std::string> roots_;  // as given, and where they really are
};

}  // namespace wan::server
