#include "engine/text/unigram.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace wan {
namespace {

constexpr double kUnknownPenalty = 10;

// The best segmentation of the text up to a byte: its score, and its last piece.
struct BestPath {
  double score = 0;
  int64_t start = -1;  // -1: no segmentation was found yet
  int64_t id = 0;
};

size_t CharacterLength(std::string_view text) {
  int32_t length = 0;
  U8_FWD_1(text.data(), length, static_cast<int32_t>(std::min<size_t>(text.size(), U8_MAX_LENGTH)));
  return length;
}

}  // namespace

UnigramModel::UnigramModel(std::vector<SpieceModel::Piece> pieces, int64_t unknown_id)
    : pieces_(std::move(pieces)), by_text_(pieces_.size()), unknown_id_(unknown_id) {
  std::iota(by_text_.begin(), by_text_.end(), 0);
  std::sort(by_text_.begin(), by_text_.end(),
            [this](int32_t a, int32_t b) { return pieces_[a].text < pieces_[b].text; });
  float worst = std::numeric_limits<float>::max();
  for (const SpieceModel::Piece& piece : pieces_) worst = std::min(worst, piece.score);
  unknown_score_ = static_cast<double>(worst) - kUnknownPenalty;
}

template <typename Visit>
void UnigramModel::VisitPrefixes(std::string_view text, Visit visit) const {
  auto begin = by_text_.begin();
  auto end = by_text_.end();
  // All pieces in [begin, end) have their first `length` bytes in common with the text; the
  // shortest piece comes first.
  for (size_t length = 0; length < text.size(); ++length) {
    const auto byte_of = [&](int32_t id) {
      const std::string& piece = pieces_[id].text;
      return piece.size() > length ? static_cast<uint8_t>(piece[length]) : -1;
    };
    const int byte = static_cast<uint8_t>(text[length]);
    begin = std::partition_point(begin, end, [&](int32_t id) { return byte_of(id) < byte; });
    end = std::partition_point(begin, end, [&](int32_t id) { return byte_of(id) == byte; });
    if (begin == end) return;
    if (pieces_[*begin].text.size() == length + 1) visit(*begin, length + 1);
  }
}

void UnigramModel::Segment(std::string_view word, std::vector<int64_t>& ids) const {
  std::vector<BestPath> best(word.size() + 1);
  const auto offer = [&](size_t start, size_t length, int64_t id, double score) {
    BestPath& path = best[start + length];
    const double sum = best[start].score + score;
    if (path.start < 0 || sum > path.score) path = {sum, static_cast<int64_t>(start), id};
  };
  for (size_t start = 0; start < word.size();) {
    const std::string_view rest = word.substr(start);
    const size_t character = CharacterLength(rest);
    bool covered = false;
    VisitPrefixes(rest, [&](int32_t id, size_t length) {
      offer(start, length, id, pieces_[id].score);
      covered = covered || length == character;
    });
    if (!covered) offer(start, character, unknown_id_, unknown_score_);
    start += character;
  }

  const size_t first = ids.size();
  for (auto end = static_cast<int64_t>(word.size()); end > 0; end = best[end].start) {
    const int64_t id = best[end].id;
    const bool continues_run = id == unknown_id_ && ids.size() > first && ids.back() == unknown_id_;
    if (!continues_run) ids.push_back(id);
  }
  std::reverse(ids.begin() + static_cast<int64_t>(first), ids.end());
}

}  // namespace wan
