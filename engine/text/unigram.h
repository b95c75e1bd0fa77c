// Segments words into the most probable pieces of a unigram vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/spiece_model.h"

namespace wan {

// A unigram vocabulary; an id is an index of `pieces`. Immutable and thread-safe.
class UnigramModel {
 public:
  // All pieces are candidates, including special tokens and bytes. `unknown_id` is used for
  // characters that no piece covers.
  UnigramModel(std::vector<SpieceModel::Piece> pieces, int64_t unknown_id);

  // Appends the ids of the segmentation with the highest total score. A character that no piece
  // covers scores ten less than the worst piece, and a run of them is one id. Ties are resolved
  // from the end: the longer last piece wins, then the longer one before it, and so on. Scores are
  // summed in double precision, so that repeated pieces tie exactly. `word` must be valid UTF-8.
  void Segment(std::string_view word, std::vector<int64_t>& ids) const;

  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }

 private:
  // Calls `visit(id, length)` for every piece that `text` begins with, shortest first.
  template <typename Visit>
  void VisitPrefixes(std::string_view text, Visit visit) const;

  std::vector<SpieceModel::Piece> pieces_;
  // The ids sorted by text, so that pieces with a common prefix are adjacent.
  std::vector<int32_t> by_text_;
  int64_t unknown_id_;
  double unknown_score_;
};

}  // namespace wan
