#include "client/wanctl/batch.h"

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/reports/ceilings_file.h"
#include "client/wanctl/request_fields.h"
#include "client/wanctl/values.h"

namespace wan::client {
namespace {

using Request = wan::v1::GenerationRequest;

constexpr char kFrames[] = "frames";
constexpr char kSeconds[] = "seconds";
// A server refuses messages of more than 64 MiB, and messages with more than 512 KiB besides the
// files. The limits leave some room for the encoding around each request.
constexpr size_t kMostBatchBytes = (size_t{64} << 20) - (size_t{1} << 20);
constexpr size_t kMostBatchTextBytes = size_t{448} << 10;
constexpr size_t kAroundRequest = 16;

// A row that is being read.
struct Row {
  BatchRow row;
  bool has_frames = false;
  bool has_seconds = false;
};

absl::Status CheckField(const std::string& name) {
  if (name == kSeconds || RequestFields().contains(name)) return absl::OkStatus();
  std::set<std::string> known = {kSeconds};
  for (const auto& [field, setter] : RequestFields()) known.insert(field);
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is not a field; must be one of ", absl::StrJoin(known, ", ")));
}

absl::Status SetSeconds(const std::string& value, Row& row) {
  const absl::StatusOr<double> seconds = ParseLength(value);
  if (!seconds.ok()) return seconds.status();
  row.has_seconds = true;
  row.row.seconds = *seconds;
  row.row.request.clear_num_frames();
  return absl::OkStatus();
}

absl::Status SetField(const std::string& name, const std::string& value, Row& row) {
  if (absl::Status known = CheckField(name); !known.ok()) return known;
  const bool given = name == kFrames ? row.has_seconds : name == kSeconds && row.has_frames;
  if (given) {
    return absl::InvalidArgumentError("has frames and seconds; must have one of them");
  }
  const absl::Status status =
      name == kSeconds ? SetSeconds(value, row) : RequestFields().at(name)(value, row.row.request);
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(name, " ", std::string(status.message())));
  }
  if (name == kFrames) {
    row.has_frames = true;
    row.row.seconds.reset();
  }
  return absl::OkStatus();
}

absl::Status SetFromJson(const std::string& line, Row& row) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError(
        "is not a JSON object; must be like {\"prompt\": \"A red cat.\", \"steps\": 20}");
  }
  for (const auto& [name, value] : object.items()) {
    if (value.is_null()) continue;  // An empty field is treated like one that is left out.
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    // Flags take lists without brackets: [3,4] becomes 3,4.
    if (value.is_array()) text = text.substr(1, text.size() - 2);
    if (absl::Status status = SetField(name, text, row); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// A reader of CSV, which gives a row at a time.
class CsvRows {
 public:
  explicit CsvRows(std::istream& file) : file_(file) {}

  // The number of the line in which the last row began, counted from 1.
  int line() const { return line_; }

  // Returns the next row; nullopt after the last one.
  std::optional<std::vector<std::string>> Next() {
    std::string text;
    line_ = next_line_;
    if (!ReadLine(text)) return std::nullopt;
    std::vector<std::string> row(1);
    bool quoted = false;
    for (size_t i = 0;; ++i) {
      if (i == text.size()) {
        if (!quoted) return row;
        // A line break within quotes belongs to the value.
        row.back() += '\n';
        text.clear();
        if (!ReadLine(text)) {
          unfinished_ = true;
          return row;
        }
        i = static_cast<size_t>(-1);
      } else if (text[i] == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"') {
        row.back() += text[++i];
      } else if (text[i] == '"') {
        quoted = !quoted;
      } else if (text[i] == ',' && !quoted) {
        row.emplace_back();
      } else {
        row.back() += text[i];
      }
    }
  }

  // Whether the file ended within quotes.
  bool unfinished() const { return unfinished_; }

 private:
  bool ReadLine(std::string& text) {
    if (!std::getline(file_, text)) return false;
    ++next_line_;
    if (text.ends_with('\r')) text.pop_back();
    return true;
  }

  std::istream& file_;
  int line_ = 0, next_line_ = 1;
  bool unfinished_ = false;
};

class BatchReader {
 public:
  BatchReader(const std::string& path, const BatchRow& base, int32_t count)
      : path_(path), base_(base), count_(count) {}

  absl::StatusOr<std::vector<BatchRow>> Read() {
    std::optional<std::string> text = reports::ReadFile(path_);
    if (!text.has_value()) {
      return Wrong(0, absl::StrCat("cannot be read: ", std::generic_category().message(errno)));
    }
    // Spreadsheets begin a file with a byte order mark.
    constexpr std::string_view kMark = "\xef\xbb\xbf";
    if (text->starts_with(kMark)) text->erase(0, kMark.size());
    file_.str(*std::move(text));
    const absl::Status status = path_.ends_with(".csv") ? ReadCsv() : ReadLines();
    if (!status.ok()) return status;
    if (rows_.empty()) return Wrong(0, "has no request");
    return std::move(rows_);
  }

 private:
  absl::Status ReadLines() {
    const bool json = path_.ends_with(".jsonl");
    std::string line;
    for (int number = 1; std::getline(file_, line); ++number) {
      absl::StripAsciiWhitespace(&line);
      if (line.empty()) continue;
      Row row{base_};
      absl::Status status;
      if (json) {
        status = SetFromJson(line, row);
      } else {
        row.row.request.set_prompt(line);
      }
      if (status = Add(number, status, row.row); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status ReadCsv() {
    CsvRows rows(file_);
    const std::optional<std::vector<std::string>> names = rows.Next();
    if (!names.has_value()) return Wrong(0, "is empty; must begin with the fields' names");
    for (const std::string& name : *names) {
      if (const absl::Status known = CheckField(name); !known.ok()) {
        return Wrong(rows.line(), std::string(known.message()));
      }
    }
    while (const std::optional<std::vector<std::string>> values = rows.Next()) {
      if (rows.unfinished()) return Wrong(rows.line(), "has a quote without its end");
      if (values->size() == 1 && values->front().empty()) continue;
      if (values->size() != names->size()) {
        return Wrong(rows.line(), absl::StrCat("has ", values->size(), " values; must have ",
                                               names->size(), ", as the first line has names"));
      }
      Row row{base_};
      absl::Status status;
      for (size_t i = 0; i < values->size() && status.ok(); ++i) {
        // For an empty value, the row keeps the flag's value or the model's default.
        if (!(*values)[i].empty()) status = SetField((*names)[i], (*values)[i], row);
      }
      if (status = Add(rows.line(), status, row.row); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Adds the request of a line unless reading the line has failed with `read`.
  absl::Status Add(int line, const absl::Status& read, const BatchRow& row) {
    const Request& request = row.request;
    if (!read.ok()) return Wrong(line, std::string(read.message()));
    const bool only_decodes = request.has_steps() && request.steps() == 0;
    if (request.prompt().empty() && !only_decodes) return Wrong(line, "has no prompt");
    for (int32_t i = 0; i < count_; ++i) {
      Request numbered = count_ > 1 ? Numbered(request, i) : request;
      if (const std::string& id = base_.request.request_id(); !id.empty()) {
        numbered.set_request_id(absl::StrCat(id, "-", rows_.size() + 1));
      }
      rows_.push_back({std::move(numbered), row.seconds});
    }
    return absl::OkStatus();
  }

  absl::Status Wrong(int line, const std::string& what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("--from: ", path_, line > 0 ? absl::StrCat(", line ", line) : "", " ", what));
  }

  const std::string& path_;
  const BatchRow& base_;
  const int32_t count_;
  std::istringstream file_;
  std::vector<BatchRow> rows_;
};

}  // namespace

Request Numbered(const Request& request, int index) {
  Request numbered = request;
  if (request.has_seed() && request.seed() >= 0) numbered.set_seed(request.seed() + index);
  if (!request.request_id().empty()) {
    numbered.set_request_id(absl::StrCat(request.request_id(), "-", index + 1));
  }
  return numbered;
}

absl::StatusOr<std::vector<BatchRow>> ReadBatch(const std::string& path, const BatchRow& base,
                                                int32_t count) {
  return BatchReader(path, base, count).Read();
}

SharedFiles::SharedFiles(Request& request) {
  if (request.has_image()) files_.set_image(std::move(*request.mutable_image()));
  request.clear_image();
  if (!request.initial_latents().data().empty()) {
    files_.mutable_initial_latents()->Swap(request.mutable_initial_latents());
    request.clear_initial_latents();
  }
  if (!request.latents().data().empty()) {
    files_.mutable_latents()->Swap(request.mutable_latents());
    request.clear_latents();
  }
}

void SharedFiles::AddTo(Request& request) const { request.MergeFrom(files_); }

size_t SharedFiles::bytes() const { return files_.ByteSizeLong(); }

size_t FitIntoBatch(std::span<const Request> requests, size_t file_bytes) {
  size_t text = 0, count = 0;
  while (count < std::min<size_t>(requests.size(), kMostInBatch)) {
    text += requests[count].ByteSizeLong() + kAroundRequest;
    const bool fits =
        text <= kMostBatchTextBytes && text + (count + 1) * file_bytes <= kMostBatchBytes;
    if (!fits && count > 0) break;
    ++count;
  }
  return count;
}

}  // namespace wan::client
