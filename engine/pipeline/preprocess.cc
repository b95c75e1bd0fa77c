#include "engine/pipeline/preprocess.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/api/request_limits.h"
#include "engine/formats/latents_file.h"
#include "engine/media/image_decode.h"
#include "engine/planning/lora_schedule.h"
#include "engine/planning/plan.h"
#include "engine/text/cleaning.h"

namespace wan {
namespace {

// Stores the text's tokens in `prepared` and returns their number. If the text is invalid, adds a
// violation of `field`.
std::optional<int64_t> ReadText(const char* field, std::string_view text, const PlannedModel& model,
                                const Tokenizer* tokenizer, PromptTokens& prepared,
                                std::vector<FieldViolation>& violations) {
  if (text.size() > kMaxPromptBytes) {
    violations.push_back(
        {field, absl::StrCat("has ", text.size(), " bytes; must have at most ", kMaxPromptBytes)});
    return std::nullopt;
  }
  absl::StatusOr<PromptTokens> tokens = TokenizePrompt(tokenizer, text, model.transformer.text_len);
  if (!tokens.ok()) {
    violations.push_back({field, std::string(tokens.status().message())});
    return std::nullopt;
  }
  prepared = *std::move(tokens);
  return prepared.uncut_length;
}

// Finds the latents in a file of the request (null: none) and returns their shape. Returns nullopt
// if the file is null or wrong; a wrong file also adds a violation of `field`.
std::optional<std::vector<int64_t>> ReadLatents(const char* field,
                                                const std::shared_ptr<const std::string>& file,
                                                std::optional<StoredTensor>& prepared,
                                                std::vector<FieldViolation>& violations) {
  if (file == nullptr) return std::nullopt;
  absl::StatusOr<StoredTensor> found = FindLatentsOnce(file);
  if (!found.ok()) {
    violations.push_back({field, std::string(found.status().message())});
    return std::nullopt;
  }
  prepared = *std::move(found);
  return prepared->shape;
}

// `resolved` is the request as ResolveRequest returned it. The function never fails: errors become
// violations.
InspectedRequest InspectRequest(const GenerationRequest& resolved, const PlannedModel& model,
                                const Tokenizer* tokenizer) {
  InspectedRequest inspected;
  auto prepared = std::make_shared<PreparedRequest>();
  inspected.prompt_tokens =
      ReadText("prompt", resolved.prompt, model, tokenizer, prepared->prompt, inspected.violations);
  if (!model.few_step.has_value()) {
    inspected.negative_prompt_tokens =
        ReadText("negative_prompt", *resolved.negative_prompt, model, tokenizer,
                 prepared->negative_prompt, inspected.violations);
  }
  if (resolved.image != nullptr) {
    const absl::StatusOr<MeasuredImage> measured = MeasureImage(*resolved.image);
    if (measured.ok()) {
      inspected.image = ImageSize{measured->facts.width, measured->facts.height};
      inspected.image_decoding_bytes = measured->decoding_bytes;
    } else {
      inspected.violations.push_back({"image", std::string(measured.status().message())});
    }
  }
  inspected.initial_latents = ReadLatents("initial_latents", resolved.initial_latents,
                                          prepared->initial_latents, inspected.violations);
  inspected.latents =
      ReadLatents("latents", resolved.latents, prepared->latents, inspected.violations);
  inspected.prepared = std::move(prepared);
  return inspected;
}

}  // namespace

absl::StatusOr<PromptTokens> TokenizePrompt(const Tokenizer* tokenizer, std::string_view text,
                                            int64_t max_tokens) {
  absl::StatusOr<std::string> cleaned = CleanPrompt(text);
  if (!cleaned.ok()) return cleaned.status();
  PromptTokens tokens;
  if (tokenizer != nullptr) {
    tokens.ids = tokenizer->Encode(*cleaned, static_cast<int>(max_tokens));
    tokens.uncut_length = tokenizer->CountTokens(*cleaned);
    return tokens;
  }
  constexpr int64_t kFirstByteId = 3;
  tokens.uncut_length = static_cast<int64_t>(cleaned->size()) + 1;
  for (const char c : *cleaned) {
    if (static_cast<int64_t>(tokens.ids.size()) + 1 >= max_tokens) break;
    tokens.ids.push_back(kFirstByteId + static_cast<unsigned char>(c));
  }
  tokens.ids.push_back(Tokenizer::kEndId);
  return tokens;
}

absl::StatusOr<GenerationPlan> PlanRequest(const GenerationRequest& request,
                                           const PlannedModel& model, const Tokenizer* tokenizer,
                                           int64_t drawn_seed, const PlanLimits& limits) {
  const GenerationRequest resolved = ResolveRequest(request, model, drawn_seed);
  InspectedRequest inspected = InspectRequest(resolved, model, tokenizer);
  // Only the original request shows which fields the LoRAs' schedules may set.
  if (auto problem = ProblemOfLoraSchedules(model, request); problem.has_value()) {
    inspected.violations.push_back(*std::move(problem));
  }
  return MakePlan(resolved, model, inspected, limits);
}

}  // namespace wan
