// Segments words into the most probable pieces of a unigram vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/spiece_model.h"

namespace wan {

// A unigram vocabulary. An id is a position in the list of pieces. Immutable and thread-safe.
class UnigramModel {
 public:
  // Every piece takes part, also marks and bytes. `unknown_id` stands for characters that no piece
  // covers.
  UnigramModel(std::vector<SpieceModel::Piece> pieces, int64_t unknown_id);

  // Appends the ids of the segmentation with the highest sum of scores. A character that no piece
  // covers costs ten more than the worst piece, and a run of such characters is one id. Among equal
  // sums the segmentation wins whose last piece begins first, then the one before it, and so on.
  // Sums are in double precision, so that repeated pieces tie exactly. `word` must be valid UTF-8.
  void Segment(std::string_view word, std::vector<int64_t>& ids) const;

  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }

 private:
  // Calls `visit(id, length)` for every piece with which `text` begins, the shortest first.
  template <typename Visit>
  void VisitPrefixes(std::string_view text, Visit visit) const;

  std::vector<SpieceModel::Piece> pieces_;
  // The ids in the order of their texts, so that pieces with a common beginning form a range.
  std::vector<int32_t> by_text_;
  int64_t unknown_id_;
  double unknown_score_;
};

}  // namespace wan
