// The tokenizer of the text encoder: UMT5's SentencePiece vocabulary, applied as in Hugging Face's
// T5 tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wan {

// Turns cleaned prompts into token ids. Immutable and thread-safe once it is loaded.
//
// The ids equal those of the T5 tokenizer in transformers, which differ from SentencePiece's own
// (docs/design/text.md): a run of unknown characters becomes a single id 2, never bytes; "</s>",
// "<pad>", "<unk>" and "<extra_id_N>" in the text become the special ids; "<0x41>" becomes the
// piece of that byte; words are segmented one by one, with scores that are summed in double
// precision.
class Tokenizer {
 public:
  static constexpr int64_t kPadId = 0;
  static constexpr int64_t kEndId = 1;
  static constexpr int64_t kUnknownId = 2;
  // The number of UMT5's sentinels, which are "<extra_id_0>" and so on. Sentinels that the model
  // file lacks come after its pieces, in decreasing order.
  static constexpr int kExtraIds = 300;
  // The number of ids, including the end mark, with which Wan's models were trained.
  static constexpr int kMaxTokens = 512;

  // Reads a unigram model of SentencePiece: "google/umt5-xxl/spiece.model" in the original layout,
  // "tokenizer/spiece.model" in diffusers' layout. NOT_FOUND if the file does not exist; DATA_LOSS
  // if it cannot be read or parsed; INVALID_ARGUMENT if it is another kind of SentencePiece model.
  // Every message names `path`.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const std::string& path);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Returns the ids of a text that CleanPrompt returned, followed by the end mark. The ids are
  // never padded. A longer text is cut to `max_tokens` ids (at least 1), including the end mark.
  // Bytes that are not valid UTF-8 count as U+FFFD.
  std::vector<int64_t> Encode(std::string_view cleaned, int max_tokens = kMaxTokens) const;

  // Returns how many ids the whole text has, including the end mark; Encode cuts the text if there
  // are more than its limit.
  int64_t CountTokens(std::string_view cleaned) const;

  // Returns how many different ids there are: the pieces in the file, then the sentinels. The
  // embedding table of a model may have more rows.
  int64_t vocabulary_size() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<const State> state);

  // Returns all ids of the text without the end mark.
  std::vector<int64_t> Segment(std::string_view text) const;

  std::unique_ptr<const State> state_;
};

}  // namespace wan
