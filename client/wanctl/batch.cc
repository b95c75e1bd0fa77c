#include "client/wanctl/batch.h"

#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
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

namespace wan::client {
namespace {

using Request = wan::v1::GenerationRequest;

absl::StatusOr<FieldSetter> FindField(const std::string& name) {
  const auto found = RequestFields().find(name);
  if (found != RequestFields().end()) return found->second;
  return absl::InvalidArgumentError(absl::StrCat(
      name, " is not a field; must be one of ",
      absl::StrJoin(RequestFields(), ", ",
                    [](std::string* out, const auto& field) { out->append(field.first); })));
}

absl::Status SetField(const std::string& name, const std::string& value, Request& request) {
  const absl::StatusOr<FieldSetter> setter = FindField(name);
  if (!setter.ok()) return setter.status();
  absl::Status status = (*setter)(value, request);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(name, " ", std::string(status.message())));
}

absl::Status SetFromJson(const std::string& line, Request& request) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError(
        "is not a JSON object; must be like {\"prompt\": \"A red cat.\", \"steps\": 20}");
  }
  for (const auto& [name, value] : object.items()) {
    if (value.is_null()) continue;  // like a field that is left out
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    // [3,4] is 3,4, as flags have it.
    if (value.is_array()) text = text.substr(1, text.size() - 2);
    if (absl::Status status = SetField(name, text, request); !status.ok()) return status;
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
  BatchReader(const std::string& path, const Request& base, int32_t count)
      : path_(path), base_(base), count_(count) {}

  absl::StatusOr<std::vector<Request>> Read() {
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
    if (requests_.empty()) return Wrong(0, "has no request");
    return std::move(requests_);
  }

 private:
  absl::Status ReadLines() {
    const bool json = path_.ends_with(".jsonl");
    std::string line;
    for (int number = 1; std::getline(file_, line); ++number) {
      absl::StripAsciiWhitespace(&line);
      if (line.empty()) continue;
      Request request = base_;
      absl::Status status;
      if (json) {
        status = SetFromJson(line, request);
      } else {
        request.set_prompt(line);
      }
      if (status = Add(number, status, request); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status ReadCsv() {
    CsvRows rows(file_);
    const std::optional<std::vector<std::string>> names = rows.Next();
    if (!names.has_value()) return Wrong(0, "is empty; must begin with the fields' names");
    for (const std::string& name : *names) {
      if (const absl::Status known = FindField(name).status(); !known.ok()) {
        return Wrong(rows.line(), std::string(known.message()));
      }
    }
    while (const std::optional<std::vector<std::string>> row = rows.Next()) {
      if (rows.unfinished()) return Wrong(rows.line(), "has a quote without its end");
      if (row->size() == 1 && row->front().empty()) continue;
      if (row->size() != names->size()) {
        return Wrong(rows.line(), absl::StrCat("has ", row->size(), " values; must have ",
                                               names->size(), ", as the first line has names"));
      }
      Request request = base_;
      absl::Status status;
      for (size_t i = 0; i < row->size() && status.ok(); ++i) {
        // An empty value is that of the flag, or the model's default.
        if (!(*row)[i].empty()) status = SetField((*names)[i], (*row)[i], request);
      }
      if (status = Add(rows.line(), status, request); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Adds the request of a line unless reading the line has failed with `read`.
  absl::Status Add(int line, const absl::Status& read, const Request& request) {
    if (!read.ok()) return Wrong(line, std::string(read.message()));
    const bool only_decodes = request.has_steps() && request.steps() == 0;
    if (request.prompt().empty() && !only_decodes) return Wrong(line, "has no prompt");
    for (int32_t i = 0; i < count_; ++i) {
      Request numbered = count_ > 1 ? Numbered(request, i) : request;
      if (!base_.request_id().empty()) {
        numbered.set_request_id(absl::StrCat(base_.request_id(), "-", requests_.size() + 1));
      }
      requests_.push_back(std::move(numbered));
    }
    return absl::OkStatus();
  }

  absl::Status Wrong(int line, const std::string& what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("--from: ", path_, line > 0 ? absl::StrCat(", line ", line) : "", " ", what));
  }

  const std::string& path_;
  const Request& base_;
  const int32_t count_;
  std::istringstream file_;
  std::vector<Request> requests_;
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

absl::StatusOr<std::vector<Request>> ReadBatch(const std::string& path, const Request& base,
                                               int32_t count) {
  return BatchReader(path, base, count).Read();
}

}  // namespace wan::client
