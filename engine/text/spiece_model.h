// The parts of a SentencePiece model file that a tokenizer needs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wan {

struct SpieceModel {
  struct Piece {
    // text in UTF-8; U+2581 stands for the space before a word
    std::string text;
    // The logarithm of the piece's probability; 0 for special tokens and bytes.
    float score = 0;
  };
  // All pieces; the index of a piece is its id.
  std::vector<Piece> pieces;
  // The rules of normalization in SentencePiece's compiled form (engine/text/charsmap.h); may be
  // empty.
  std::string charsmap;
};

// Reads a unigram model with the layout of T5's model: pieces 0, 1 and 2 are "<pad>", "</s>" and
// "<unk>". NOT_FOUND if the file does not exist; DATA_LOSS if it cannot be read, is not a model or
// is truncated; INVALID_ARGUMENT if it is another kind of model. Every message names `path`.
// Thread-safe.
absl::StatusOr<SpieceModel> ReadSpieceModel(const std::string& path);

}  // namespace wan
