// SentencePiece's own tokenization, to hold ours against. Apart from the other tests: its header
// and Abseil's do not compile together.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace wan {

class SentencePieceOracle {
 public:
  explicit SentencePieceOracle(const std::string& model_path);
  ~SentencePieceOracle();

  // False if the library cannot load the model; the oracle is useless then.
  bool ok() const;
  // Ids without end mark; unknown characters are byte pieces.
  std::vector<int> Encode(const std::string& text) const;
  bool IsByte(int id) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace wan
