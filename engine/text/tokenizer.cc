#include "engine/text/tokenizer.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/text/charsmap.h"
#include "engine/text/spiece_model.h"
#include "engine/text/unigram.h"

namespace wan {
namespace {

// U+2581, which stands for the space before a word.
constexpr std::string_view kWordStart = "\u2581";

// The special tokens that may occur in a text as they are spelled, and their ids.
using Marks = std::unordered_map<std::string, int64_t>;

// Returns the special token with which `text` begins; empty if there is none. Each special token
// consists of '<', characters other than '<' and '>', and '>'.
Marks::const_iterator FindMark(const Marks& marks, std::string_view text) {
  constexpr size_t kLongestMark = std::string_view("<extra_id_299>").size();
  const size_t close = text.substr(0, kLongestMark).find('>');
  if (close == std::string_view::npos) return marks.end();
  return marks.find(std::string(text.substr(0, close + 1)));
}

// Appends the sentinels that the model file lacks.
void AddExtraIds(std::vector<SpieceModel::Piece>& pieces, Marks& marks) {
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].text.starts_with("<extra_id_")) marks.emplace(pieces[id].text, id);
  }
  for (int n = Tokenizer::kExtraIds - 1; n >= 0; --n) {
    const std::string mark = absl::StrCat("<extra_id_", n, ">");
    if (marks.emplace(mark, pieces.size()).second) pieces.push_back({mark, 0});
  }
}

// Splits a normalized text into words, each of which begins with kWordStart. A kWordStart inside of
// a word begins a new word.
std::vector<std::string> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  const auto size = static_cast<int32_t>(text.size());
  for (int32_t next = 0; next < size;) {
    const int32_t start = next;
    UChar32 code_point;
    U8_NEXT(text.data(), next, size, code_point);
    const std::string_view character = text.substr(start, next - start);
    if (u_isUWhiteSpace(code_point)) {
      inside = false;
      continue;
    }
    const bool starts_word = character == kWordStart;
    if (!inside || starts_word) words.emplace_back(kWordStart);
    if (!starts_word) words.back().append(character);
    inside = true;
  }
  return words;
}

}  // namespace

struct Tokenizer::State {
  Charsmap charsmap;
  UnigramModel model;
  Marks marks;
};

Tokenizer::Tokenizer(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(const std::string& path) {
  absl::StatusOr<SpieceModel> file = ReadSpieceModel(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<Charsmap> charsmap = Charsmap::Parse(file->charsmap);
  if (!charsmap.ok()) {
    return absl::DataLossError(
        absl::StrCat("tokenizer file '", path, "' is damaged: ", charsmap.status().message()));
  }
  Marks marks = {{"<pad>", kPadId}, {"</s>", kEndId}, {"<unk>", kUnknownId}};
  AddExtraIds(file->pieces, marks);
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::make_unique<const State>(State{
      *std::move(charsmap), UnigramModel(std::move(file->pieces), kUnknownId), std::move(marks)})));
}

std::vector<int64_t> Tokenizer::Segment(std::string_view text) const {
  std::vector<int64_t> ids;
  const auto append_plain = [&](std::string_view plain) {
    for (const std::string& word : SplitWords(state_->charsmap.Normalize(plain))) {
      state_->model.Segment(word, ids);
    }
  };
  // Look for special tokens before anything else changes the text.
  size_t plain_start = 0;
  for (size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at)) {
    const auto mark = FindMark(state_->marks, text.substr(at));
    if (mark == state_->marks.end()) {
      ++at;
      continue;
    }
    append_plain(text.substr(plain_start, at - plain_start));
    ids.push_back(mark->second);
    at += mark->first.size();
    plain_start = at;
  }
  append_plain(text.substr(plain_start));
  return ids;
}

std::vector<int64_t> Tokenizer::Encode(std::string_view cleaned, int max_tokens) const {
  std::vector<int64_t> ids = Segment(cleaned);
  const auto room = static_cast<size_t>(std::max(max_tokens, 1)) - 1;
  ids.resize(std::min(ids.size(), room));
  ids.push_back(kEndId);
  return ids;
}

int64_t Tokenizer::CountTokens(std::string_view cleaned) const {
  return static_cast<int64_t>(Segment(cleaned).size()) + 1;
}

int64_t Tokenizer::vocabulary_size() const { return state_->model.size(); }

}  // namespace wan
