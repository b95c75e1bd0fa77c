// The text encoder's tokenizer: UMT5's SentencePiece vocabulary, used the way Hugging Face's T5
// tokenizer uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wan {

// Turns cleaned prompts into token ids. Immutable and thread-safe once loaded.
//
// The ids equal those of transformers' T5 tokenizer, which differ from SentencePiece's own
// (docs/design/text.md): a run of unknown characters is one id 2, never bytes; "</s>", "<pad>",
// "<unk>" and "<extra_id_N>" in the text are the special ids, "<0x41>" is that byte's piece; every
// word is segmented on its own, with scores summed in double precision.
class Tokenizer {
 public:
  static constexpr int64_t kPadId = 0;
  static constexpr int64_t kEndId = 1;
  static constexpr int64_t kUnknownId = 2;
  // UMT5 has this many sentinels, "<extra_id_0>" and so on. Those that the model file lacks follow
  // its pieces, in decreasing order.
  static constexpr int kExtraIds = 300;
  // The number of ids with which Wan's models were trained, with the end mark.
  static constexpr int kMaxTokens = 512;

  // Reads a SentencePiece unigram model: "google/umt5-xxl/spiece.model" of the original layout,
  // "tokenizer/spiece.model" of diffusers'. NOT_FOUND if there is no such file, DATA_LOSS if it
  // cannot be read or parsed, INVALID_ARGUMENT if it is a SentencePiece model of another kind.
  // Every message names `path`.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const std::string& path);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Returns the ids of a text that CleanPrompt returned. They end with the end mark and are never
  // padded. A longer text is cut, so that `max_tokens` ids, the last of them the end mark, are
  // left. `max_tokens` must be at least 1. A byte sequence that is not UTF-8 counts as U+FFFD.
  std::vector<int64_t> Encode(std::string_view cleaned, int max_tokens = kMaxTokens) const;

  // Returns the number of ids of the whole text, with the end mark. Encode cuts the text if this
  // number is above its limit.
  int64_t CountTokens(std::string_view cleaned) const;

  // Returns the number of ids: the pieces of the file, then the sentinels. (A model's embedding
  // table may have more rows.)
  int64_t vocabulary_size() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<const State> state);

  // Returns all ids of the text, without the end mark.
  std::vector<int64_t> Segment(std::string_view text) const;

  std::unique_ptr<const State> state_;
};

}  // namespace wan
