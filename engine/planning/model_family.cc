#include "engine/planning/model_family.h"

namespace wan {

const std::string_view kUpstreamNegativePrompt =
    "色调艳丽，过曝，静态，细节模糊不清，字幕，风格，作品，画作，画面，静止，整体发灰，最差质"
    "量，低质量，"
    "JPEG压缩残留，丑陋的，残缺的，多余的手指，画得不好的手部，画得不好的脸部，畸形的，毁容的"
    "，形态畸形的肢体，"
    "手指融合，静止不动的画面，杂乱的背景，三条腿，背景人很多，倒着走";

const ModelFamily& FindModelFamily(FamilyId id) {
  switch (id) {
    case FamilyId::kTi2v5b:
      return Ti2v5bFamily();
    case FamilyId::kT2vA14b:
      return T2vA14bFamily();
    case FamilyId::kI2vA14b:
      return I2vA14bFamily();
  }
  return Ti2v5bFamily();
}

}  // namespace wan
