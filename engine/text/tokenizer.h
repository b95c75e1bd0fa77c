// The text encoder's tokenizer: UMT5's SentencePiece vocabulary, applied as in Hugging Face's T5
// tokenizer.
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
// Ids equal those of transformers' T5 tokenizer, which differ from SentencePiece's own
// (docs/design/text.md): a run of unknown characters is one id 2, never bytes; "</s>", "<pad>",
// "<unk>" and "<extra_id_N>" in the text are the special ids; "<0x41>" is that byte's piece; words
// are segmented separately, with scores summed in double precision.
class Tokenizer {
 public:
  static constexpr int64_t kPadId = 0;
  static constexpr int64_t kEndId = 1;
  static constexpr int64_t kUnknownId = 2;
  // UMT5 has this many sentinels: "<extra_id_0>" and so on. Sentinels that the model file lacks
  // follow its pieces, in decreasing order.
  static constexpr int kExtraIds = 300;
  // Number of ids, including the end mark, with which Wan's models were trained.
  static constexpr int kMaxTokens = 512;

  // Reads a SentencePiece unigram model: "google/umt5-xxl/spiece.model" in the original layout,
  // "tokenizer/spiece.model" in diffusers'. NOT_FOUND if the file does not exist, DATA_LOSS if it
  // cannot be read or parsed, INVALID_ARGUMENT if it is another kind of SentencePiece model. Every
  // message names `path`.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const std::string& path);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Returns the ids of a text from CleanPrompt, followed by the end mark and never padded. Longer
  // texts are cut to `max_tokens` ids (at least 1), including the end mark. Invalid UTF-8 counts as
  // U+FFFD.
  std::vector<int64_t> Encode(std::string_view cleaned, int max_tokens = kMaxTokens) const;

  // Returns the number of ids of the whole text, including the end mark; Encode cuts the text if it
  // exceeds the limit.
  int64_t CountTokens(std::string_view cleaned) const;

  // Returns the number of ids: the file's pieces, then the sentinels. A model's embedding table may
  // have more rows.
  int64_t vocabulary_size() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<const State> state);

  // Returns all ids of the text, without an end mark.
  std::vector<int64_t> Segment(std::string_view text) const;

  std::unique_ptr<const State> state_;
};

}  // namespace wan
