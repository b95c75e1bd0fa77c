// Restricts models and LoRAs that callers name to certain folders.
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
  // Allows every path.
  ModelRoots() = default;
  // Allows paths below these folders; an empty list allows none.
  explicit ModelRoots(std::vector<std::string> roots);

  // Returns the violations of the spec's paths that, by their text alone, do not lie below a root.
  // It looks at no file, so the answer does not tell which files exist. "synthetic:FAMILY" names no
  // file and is always allowed.
  std::vector<FieldViolation> Check(const ModelSpec& spec) const;

  // Returns the spec with every path replaced by its real path, so that no link on the way can be
  // exchanged later. INVALID_ARGUMENT with a violation for each path that Check refuses, that does
  // not exist, that a link leads out of the roots, or below which there is a link out of the roots,
  // or anything else than folders and regular files. Blocks: it reads folders.
  absl::StatusOr<ModelSpec> Resolve(ModelSpec spec) const;

 private:
  bool Contain(const std::string& path) const;
  // Returns what is wrong with the path; if nothing, its real path.
  std::optional<std::string> ResolvePath(const std::string& path, std::string* real) const;

  bool anywhere_ = true;
  std::vector<std::string> roots_;  // the roots as given, and their real paths
};

}  // namespace wan::server
