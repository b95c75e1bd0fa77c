// The content of a SentencePiece model file that a tokenizer needs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wan {

struct SpieceModel {
  struct Piece {
    // UTF-8; U+2581 stands for the space in front of a word.
    std::string text;
    // The logarithm of the piece's probability; 0 for marks and bytes.
    float score = 0;
  };
  // The pieces, indexed by id.
  std::vector<Piece> pieces;
  // The normalization rules in SentencePiece's compiled form (engine/text/charsmap.h); may be
  // empty.
  std::string charsmap;
};

// Reads a unigram model with the layout of T5's models: the pieces 0, 1, 2 are "<pad>", "</s>",
// "<unk>". NOT_FOUND if there is no such file, DATA_LOSS if it cannot be read, is not a model or is
// cut off, and INVALID_ARGUMENT for a model of another kind. Every message names `path`.
// Thread-safe.
absl::StatusOr<SpieceModel> ReadSpieceModel(const std::string& path);

}  // namespace wan
