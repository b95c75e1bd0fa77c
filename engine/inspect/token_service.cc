#include "engine/inspect/token_service.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint_parts.h"
#include "engine/formats/json_text.h"
#include "engine/text/cleaning.h"

namespace wan {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<Json> Tokens(const Tokenizer& tokenizer, std::string_view line) {
  const absl::StatusOr<nlohmann::json> request = ParseJson(line, "line");
  if (!request.ok()) return request.status();
  if (!request->is_object() || !request->contains("text") || !request->at("text").is_string()) {
    return absl::InvalidArgumentError("expected an object with a string \"text\"");
  }
  const absl::StatusOr<std::string> cleaned =
      CleanPrompt(request->at("text").get_ref<const std::string&>());
  if (!cleaned.ok()) return cleaned.status();
  return Json{{"cleaned", *cleaned}, {"ids", tokenizer.Encode(*cleaned)}};
}

}  // namespace

absl::StatusOr<TokenService> TokenService::Open(const std::string& path) {
  std::error_code error;
  std::string model_path = path;
  if (!std::filesystem::is_regular_file(path, error)) {
    model_path = ReadCheckpointParts(path).tokenizer_path;
  }
  if (model_path.empty()) {
    return absl::NotFoundError(
        absl::StrCat(path, ": neither a checkpoint with a tokenizer nor a SentencePiece model"));
  }
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::Load(model_path);
  if (!tokenizer.ok()) return tokenizer.status();
  return TokenService(*std::move(tokenizer));
}

TokenService::TokenService(std::unique_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)) {}

std::string TokenService::Answer(std::string_view line) const {
  const absl::StatusOr<Json> tokens = Tokens(*tokenizer_, line);
  const Json answer =
      tokens.ok() ? *tokens : Json{{"error", std::string(tokens.status().message())}};
  return answer.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace wan
