#include "tests/engine/text/sentencepiece_oracle.h"

#include <sentencepiece_processor.h>

namespace wan {

struct SentencePieceOracle::Library {
  sentencepiece::SentencePieceProcessor processor;
};

SentencePieceOracle::SentencePieceOracle(const std::string& model_path)
    : library_(std::make_unique<Library>()) {
  library_->processor.Load(model_path).IgnoreError();
}

SentencePieceOracle::~SentencePieceOracle() = default;

bool SentencePieceOracle::ok() const { return library_->processor.status().ok(); }

std::vector<int> SentencePieceOracle::Encode(const std::string& text) const {
  return library_->processor.EncodeAsIds(text);
}

bool SentencePieceOracle::IsByte(int id) const { return library_->processor.IsByte(id); }

}  // namespace wan
