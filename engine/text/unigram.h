// Splits words into the most probable pieces of a unigram vocabulary.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/text/spiece_model.h"

namespace wan {

// A unigram vocabulary. The id of a piece is its index in `pieces`. Immutable and thread-safe.
class UnigramModel {
 public:
  // All pieces may be used, including special tokens and bytes. `unknown_id` stands for characters
  // that no piece covers.
  UnigramModel(std::vector<SpieceModel::Piece> pieces, int64_t unknown_id);

  // Appends the ids of the segmentation that has the highest total score. A character that no piece
  // covers has the score of the worst piece minus ten. A run of characters that no piece covers
  // gets only one id. If several segmentations have the highest score, the segmentation with the
  // longest last piece wins; if these are equally long, the previous pieces decide, and so on.
  // Scores are summed in double precision, so that equal sums of repeated pieces are exactly equal.
  // `word` must be valid UTF-8.
  void Segment(std::string_view word, std::vector<int64_t>& ids) const;

  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }

 private:
  // Calls `visit(id, length)` for each piece with which `text` begins, shortest first.
  template <typename Visit>
  void VisitPrefixes(std::string_view text, Visit visit) const;

  std::vector<SpieceModel::Piece> pieces_;
  // All ids, sorted by the text of their pieces, so that pieces with a common beginning are next to
  // each other.
  std::vector<int32_t> by_text_;
  int64_t unknown_id_;
  double unknown_score_;
};

}  // namespace wan
