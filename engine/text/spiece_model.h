// What a SentencePiece model file holds, as far as a tokenizer needs it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wan {

struct SpieceModel {
  struct Piece {
    // UTF-8; U+2581 stands for the space in front of a word.
    std::string text;
    // Logarithm of a probability; 0 for marks and bytes.
    float score = 0;
  };
  // By id.
  std::vector<Piece> pieces;
  // Normalization rules in SentencePiece's compiled form (engine/text/charsmap.h); may be empty.
  std::string charsmap;
};

// Reads a unigram model laid out as T5's: pieces 0, 1, 2 are "<pad>", "</s>", "<unk>". NOT_FOUND,
// DATA_LOSS (unreadable, not a model, cut) or INVALID_ARGUMENT (a model of another kind), naming
// `path`.
absl::StatusOr<SpieceModel> ReadSpieceModel(const std::string& path);

}  // namespace wan
