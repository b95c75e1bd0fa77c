#include "engine/pipeline/model_family.h"

#include <array>

namespace wan {

const ModelFamily* FindModelFamily(std::string_view name) {
  static const std::array kFamilies = {&Ti2v5bFamily()};
  for (const ModelFamily* family : kFamilies) {
    if (family->name == name) return family;
  }
  return nullptr;
}

}  // namespace wan
