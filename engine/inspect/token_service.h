// Answers prompts, one per line, with the tokens that the text encoder would get.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/text/tokenizer.h"

namespace wan {

class TokenService {
 public:
  // `path` is the folder of a checkpoint (of which only the tokenizer is needed) or a SentencePiece
  // model. NOT_FOUND, naming the path, if there is no tokenizer; otherwise the errors of
  // Tokenizer::Load.
  static absl::StatusOr<TokenService> Open(const std::string& path);

  // Answers a line {"text": ...} with {"cleaned": text, "ids": [...]}. The ids include the end
  // mark, and are cut to the model's maximum length. Answers any other line with {"error": ...}.
  // The answer is one line without its newline. Thread-safe.
  std::string Answer(std::string_view line) const;

 private:
  explicit TokenService(std::unique_ptr<const Tokenizer> tokenizer);

  std::unique_ptr<const Tokenizer> tokenizer_;
};

}  // namespace wan
