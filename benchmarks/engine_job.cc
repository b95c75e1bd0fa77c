#include "benchmarks/engine_job.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/families/model_family.h"
#include "engine/media/image_encode.h"

namespace wan {

absl::StatusOr<std::vector<ComponentResidency>> ParseResidency(
    const std::vector<std::string>& entries) {
  std::vector<ComponentResidency> policies;
  for (const std::string& entry : entries) {
    const std::optional<ComponentResidency> residency = ParseComponentResidency(entry);
    if (!residency.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("'", entry, "' is not COMPONENT=POLICY"));
    }
    policies.push_back(*residency);
  }
  return policies;
}

absl::StatusOr<GenerationRequest> BenchmarkRequest(const Engine& engine, const std::string& shape,
                                                   bool with_image) {
  int width = 0;
  int height = 0;
  int frames = 0;
  if (std::sscanf(shape.c_str(), "%dx%dx%d", &width, &height, &frames) != 3) {
    return absl::InvalidArgumentError(absl::StrCat("'", shape, "' is not WxHxFRAMES"));
  }
  GenerationRequest request;
  request.model = "m";
  request.prompt = "A lighthouse at sunset, waves break on the rocks";
  request.seed = 1;
  request.size_is_exact = true;
  request.width = width;
  request.height = height;
  request.num_frames = frames;
  const ModelFamily& family = FindModelFamily(engine.Models().front().family);
  if (with_image || !family.accepts_text_only) {
    constexpr int kSide = 16;
    absl::StatusOr<std::string> black =
        EncodePng(std::vector<uint8_t>(3 * kSide * kSide), kSide, kSide);
    if (!black.ok()) return black.status();
    request.image = std::make_shared<const std::string>(*std::move(black));
  }
  return request;
}

}  // namespace wan
