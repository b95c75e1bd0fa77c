// Restricts the paths of models and LoRAs that callers name to certain folders.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/errors.h"

namespace wan::server {

// Thread-safe and immutable.
class ModelRoots {
 public:
  // Allows every path.
  ModelRoots() = default;
  // Allows only paths below these folders; an empty list allows none.
  explicit ModelRoots(std::vector<std::string> roots);

  // Returns a violation for each path of the spec that, as written, is not below a root. Does not
  // access files, so the result tells the caller nothing about them. "synthetic:FAMILY" is not a
  // path, and always allowed; so are the paths in `trusted`, and LoRAs that the server has found
  // (LoraSource::found).
  std::vector<FieldViolation> Check(const ModelSpec& spec,
                                    const std::set<std::string>& trusted = {}) const;

  // Returns the spec with every path replaced by its real path, so that nobody can redirect a link
  // of the path later. Returns INVALID_ARGUMENT with a violation for each path that Check refuses,
  // that does not exist, or that leads out of the roots through a link; also if a folder contains a
  // link out of the roots, or anything but folders and regular files. The shards in the folder of
  // an index (NAME.safetensors.index.json) are checked like a model's folder. Blocks while it reads
  // the folders. Paths that are always allowed stay as they are.
  absl::StatusOr<ModelSpec> Resolve(ModelSpec spec,
                                    const std::set<std::string>& trusted = {}) const;

 private:
  bool Contain(const std::string& path) const;
  // Returns what is wrong with the path; if nothing is wrong, stores its real path in `real`.
  std::optional<std::string> ResolvePath(const std::string& path, std::string* real) const;
  // Returns what is wrong with the files over which `entry` iterates; all of these files are below
  // `folder`. `matters` returns whether the engine may open a file of that name.
  template <typename Iterator>
  std::optional<std::string> ProblemOfEntries(const std::string& folder, Iterator entry,
                                              bool (*matters)(std::string_view name)) const;

  bool anywhere_ = true;
  std::vector<std::string> roots_;  // the configured roots and their real paths
};

}  // namespace wan::server
