#include "engine/api/model_source.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace wan {
namespace {

constexpr std::array<std::string_view, kModelParts.size()> kNames = {
    "transformer", "transformer.high", "transformer.low", "text_encoder",
    "vae",         "tokenizer",        "tiny_decoder"};
constexpr std::string_view kBaseKey = "path";
constexpr std::string_view kSynthetic = "synthetic:";

// Returns the length of the key if `text` begins with a key and '='; otherwise nullopt. A path that
// begins like a key, such as "a=b", must be written as "./a=b".
std::optional<size_t> KeyLength(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_' || c == '.';
  });
  if (end == text.begin() || end == text.end() || *end != '=') return std::nullopt;
  return static_cast<size_t>(end - text.begin());
}

// Splits the text at each comma that is followed by a key.
std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> pieces;
  size_t begin = 0;
  for (size_t comma = text.find(','); comma != std::string_view::npos;
       comma = text.find(',', comma + 1)) {
    if (!KeyLength(text.substr(comma + 1)).has_value()) continue;
    pieces.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

std::optional<ModelPart> ParsePart(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return kModelParts[static_cast<size_t>(found - kNames.begin())];
}

absl::Status Wrong(std::string_view key, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(key), ": ", std::string(what)));
}

// Returns the names of all parts: "transformer, ... or tokenizer".
std::string ListParts() {
  std::vector<std::string> names(kNames.begin(), kNames.end());
  const std::string last = std::move(names.back());
  names.pop_back();
  return absl::StrCat(absl::StrJoin(names, ", "), " or ", last);
}

absl::Status Add(std::string_view piece, bool first, ModelSource& source) {
  const std::optional<size_t> length = KeyLength(piece);
  const std::string_view key = length.has_value() ? piece.substr(0, *length) : kBaseKey;
  const std::string_view path = length.has_value() ? piece.substr(*length + 1) : piece;
  const std::optional<ModelPart> part = ParsePart(key);
  if (!part.has_value() && key != kBaseKey) {
    return Wrong(key, absl::StrCat("is not a part of a model; must be path, ", ListParts()));
  }
  if (path.empty()) {
    return Wrong(key, absl::StrCat("has no path; must be ", std::string(key), "=FILE"));
  }
  if (part.has_value() ? !source.PathOf(*part).empty() : !first && !source.base.empty()) {
    return Wrong(key, "is given twice; give each part one path");
  }
  if (part.has_value()) {
    source.parts.push_back({*part, std::string(path)});
  } else {
    source.base = std::string(path);
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view NameOf(ModelPart part) { return kNames[static_cast<size_t>(part)]; }

std::string ModelSource::PathOf(ModelPart part) const {
  for (const Part& named : parts) {
    if (named.part == part) return named.path;
  }
  return "";
}

absl::StatusOr<ModelSource> ParseModelSource(std::string_view text) {
  ModelSource source;
  bool first = true;
  for (const std::string_view piece : Split(text)) {
    if (absl::Status status = Add(piece, first, source); !status.ok()) return status;
    first = false;
  }
  std::sort(source.parts.begin(), source.parts.end(),
            [](const ModelSource::Part& a, const ModelSource::Part& b) { return a.part < b.part; });
  return source;
}

std::string ToString(const ModelSource& source) {
  if (source.parts.empty()) return source.base;
  std::vector<std::string> pieces;
  if (!source.base.empty()) pieces.push_back(absl::StrCat(std::string(kBaseKey), "=", source.base));
  for (const ModelSource::Part& part : source.parts) {
    pieces.push_back(absl::StrCat(std::string(NameOf(part.part)), "=", part.path));
  }
  return absl::StrJoin(pieces, ",");
}

std::string ChangePaths(
    const std::string& text,
    const std::function<std::string(std::string_view key, const std::string& path)>& change) {
  absl::StatusOr<ModelSource> source = ParseModelSource(text);
  if (!source.ok()) return text;
  if (!source->base.empty() && !source->base.starts_with(kSynthetic)) {
    source->base = change(source->parts.empty() ? "" : kBaseKey, source->base);
  }
  for (ModelSource::Part& part : source->parts) part.path = change(NameOf(part.part), part.path);
  return ToString(*source);
}

}  // namespace wan
