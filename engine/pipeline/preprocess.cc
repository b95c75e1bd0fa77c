#include "engine/pipeline/preprocess.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/media/image_decode.h"
#include "engine/text/cleaning.h"

namespace wan {
namespace {

// Far more than 512 tokens can hold; keeps cleaning's cost bounded whatever is sent.
constexpr size_t kMaxPromptBytes = 64 * 1024;

// Tokens of a text, or a violation of `field`.
std::optional<int64_t> CountTokens(const char* field, std::string_view text,
                                   const PlannedModel& model, const Tokenizer* tokenizer,
                                   std::vector<FieldViolation>& violations) {
  if (text.size() > kMaxPromptBytes) {
    violations.push_back(
        {field, absl::StrCat("has ", text.size(), " bytes; at most ", kMaxPromptBytes)});
    return std::nullopt;
  }
  absl::StatusOr<PromptTokens> tokens = TokenizePrompt(tokenizer, text, model.transformer.text_len);
  if (!tokens.ok()) {
    violations.push_back({field, std::string(tokens.status().message())});
    return std::nullopt;
  }
  return tokens->uncut_length;
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

InspectedRequest InspectRequest(const GenerationRequest& request, const PlannedModel& model,
                                const Tokenizer* tokenizer) {
  InspectedRequest inspected;
  inspected.prompt_tokens =
      CountTokens("prompt", request.prompt, model, tokenizer, inspected.violations);
  if (!model.few_step.has_value()) {
    const std::string negative =
        request.negative_prompt.has_value() && !request.negative_prompt->empty()
            ? *request.negative_prompt
            : *model.Defaults().negative_prompt;
    inspected.negative_prompt_tokens =
        CountTokens("negative_prompt", negative, model, tokenizer, inspected.violations);
  }
  if (request.image != nullptr) {
    absl::StatusOr<RgbImage> image = DecodeImage(*request.image);
    if (image.ok()) {
      inspected.image = VideoShape{image->width, image->height, 1};
    } else {
      inspected.violations.push_back({"image", std::string(image.status().message())});
    }
  }
  return inspected;
}

}  // namespace wan
