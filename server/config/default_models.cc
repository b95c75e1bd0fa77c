#include "server/config/default_models.h"

namespace wan::server {

std::vector<ModelSpec> DefaultModels(const std::filesystem::path& executable) {
  const std::filesystem::path folder =
      (executable.parent_path() / ".." / "share" / "wanserve" / "demo").lexically_normal();
  // In a source tree without the weights, the folder of the demo model exists but has no
  // checkpoint.
  std::error_code error;
  if (!std::filesystem::exists(folder / "config.json", error)) return {};
  return {{"demo", folder.string()}};
}

}  // namespace wan::server
