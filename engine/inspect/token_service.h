// Prompts in, tokens out, line by line: what the text encoder is given for a prompt.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/text/tokenizer.h"

namespace wan {

class TokenService {
 public:
  // `path` is a checkpoint's folder, of which only the tokenizer is needed, or a SentencePiece
  // model file. NOT_FOUND, naming the path, if there is no tokenizer; else what Tokenizer::Load
  // says.
  static absl::StatusOr<TokenService> Open(const std::string& path);

  // For {"text": ...} the answer {"cleaned": text, "ids": [...]}, with the end mark, cut to the
  // length that the model takes; {"error": ...} for anything else. One line, without its end.
  std::string Answer(std::string_view line) const;

 private:
  explicit TokenService(std::unique_ptr<const Tokenizer> tokenizer);

  std::unique_ptr<const Tokenizer> tokenizer_;
};

}  // namespace wan
