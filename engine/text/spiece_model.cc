#include "engine/text/spiece_model.h"

#include <sentencepiece_model.pb.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/api/file_problem.h"

namespace wan {
namespace {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  if (absl::Status status = CheckPath(path, PathKind::kFile); !status.ok()) return status;
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  std::string content(error ? 0 : size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (error || !file.read(content.data(), static_cast<std::streamsize>(content.size()))) {
    return absl::DataLossError(absl::StrCat("cannot read tokenizer file '", path, "'",
                                            error ? ": " + error.message() : ""));
  }
  return content;
}

// Returns the problem of the pieces; empty if they have none.
std::string FindFault(const SpieceModel& model) {
  static constexpr const char* kMarks[] = {"<pad>", "</s>", "<unk>"};
  for (size_t id = 0; id < std::size(kMarks); ++id) {
    if (id >= model.pieces.size() || model.pieces[id].text != kMarks[id]) {
      return absl::StrCat("piece ", id, " should be ", kMarks[id], " as in T5's models");
    }
  }
  std::unordered_set<std::string_view> seen;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SpieceModel::Piece& piece = model.pieces[id];
    if (piece.text.empty()) return absl::StrCat("piece ", id, " is empty");
    if (!std::isfinite(piece.score)) return absl::StrCat("piece ", id, " has no finite score");
    if (!seen.insert(piece.text).second) {
      return absl::StrCat("piece ", id, " ('", piece.text, "') occurs twice");
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<SpieceModel> ReadSpieceModel(const std::string& path) {
  absl::StatusOr<std::string> content = ReadFile(path);
  if (!content.ok()) return content.status();

  sentencepiece::ModelProto proto;
  const bool fits = content->size() <= static_cast<size_t>(std::numeric_limits<int>::max());
  if (content->empty() || !fits || !proto.ParseFromString(*content)) {
    const std::string foreign = NameForeignContent(
        std::string_view(*content).substr(0, kForeignContentBytes), FileContent::kSentencePiece);
    if (!foreign.empty()) return absl::DataLossError(absl::StrCat(path, ": ", foreign));
    return absl::DataLossError(absl::StrCat("tokenizer file '", path, "' (", content->size(),
                                            " bytes) is not a SentencePiece model, or is damaged"));
  }
  // The rules and the settings of the trainer follow the pieces. If rules and settings are missing,
  // the file was cut between two pieces, although it can be parsed.
  if (!proto.has_trainer_spec() || !proto.has_normalizer_spec()) {
    return absl::DataLossError(absl::StrCat(
        "tokenizer file '", path, "' (", content->size(),
        " bytes) ends before the specification that follows its ", proto.pieces_size(), " pieces"));
  }
  if (proto.trainer_spec().model_type() != sentencepiece::TrainerSpec::UNIGRAM) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer file '", path, "' is a SentencePiece model of type ",
                     proto.trainer_spec().model_type(), ", not a unigram model (1)"));
  }

  SpieceModel model;
  model.pieces.reserve(proto.pieces_size());
  for (auto& piece : *proto.mutable_pieces()) {
    model.pieces.push_back({std::move(*piece.mutable_piece()), piece.score()});
  }
  model.charsmap = std::move(*proto.mutable_normalizer_spec()->mutable_precompiled_charsmap());
  if (const std::string fault = FindFault(model); !fault.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer file '", path, "' is not a UMT5 tokenizer: ", fault));
  }
  return model;
}

}  // namespace wan
