#include "server/conversion/job_filter.h"

#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "engine/api/errors.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {
namespace {

constexpr size_t kMaxFilterBytes = 4096;
constexpr int kMaxComparisons = 64;
constexpr int kMaxDepth = 16;
constexpr size_t kMaxQuotedBytes = 40;

constexpr char kFields[] = "state, model, owner, priority, create_time, end_time or labels.KEY";
constexpr char kStates[] = "QUEUED, RUNNING, COMPLETED, FAILED or CANCELLED";

struct FieldFacts {
  std::string_view name;
  JobField field;
  bool ordered;  // whether the field can be compared with < and >
};

constexpr std::array<FieldFacts, 6> kFieldFacts = {{
    {"state", JobField::kState, false},
    {"model", JobField::kModel, false},
    {"owner", JobField::kOwner, false},
    {"priority", JobField::kPriority, true},
    {"create_time", JobField::kCreateTime, true},
    {"end_time", JobField::kEndTime, true},
}};

struct Token {
  enum class Kind { kEnd, kWord, kString, kOpen, kClose, kDot, kMinus, kOperator };
  Kind kind = Kind::kEnd;
  std::string text;  // the text of a word, a string (unescaped) or an operator
  size_t position = 0;
};

std::string Shown(std::string_view text) {
  const bool cut = text.size() > kMaxQuotedBytes;
  text = text.substr(0, kMaxQuotedBytes);
  return absl::StrCat("'", absl::CHexEscape(absl::string_view(text.data(), text.size())),
                      cut ? "...'" : "'");
}

std::string Shown(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kEnd:
      return "the filter ends";
    case Token::Kind::kString:
      return absl::StrCat("is the text ", Shown(token.text));
    default:
      return absl::StrCat("is ", Shown(token.text));
  }
}

absl::Status Wrong(size_t position, std::string_view what) {
  return InvalidFields(
      {{"filter", absl::StrCat("at character ", position + 1, " ", std::string(what))}});
}

// Whether the character ends a value or name that is not quoted.
bool EndsWord(char c) {
  constexpr std::string_view kSpecial = "()<>=!:\"'";
  return absl::ascii_isspace(static_cast<unsigned char>(c)) ||
         kSpecial.find(c) != std::string_view::npos;
}

absl::StatusOr<std::string> ReadString(std::string_view text, size_t& at) {
  const size_t begin = at;
  const char quote = text[at++];
  std::string value;
  for (; at < text.size(); ++at) {
    if (text[at] == quote) {
      ++at;
      return value;
    }
    if (text[at] == '\\' && at + 1 < text.size()) ++at;
    value.push_back(text[at]);
  }
  return Wrong(begin, "a text begins and its closing quote is missing");
}

absl::StatusOr<std::vector<Token>> Tokenise(std::string_view text) {
  std::vector<Token> tokens;
  size_t at = 0;
  const auto add = [&](Token::Kind kind, size_t size) {
    tokens.push_back({kind, std::string(text.substr(at, size)), at});
    at += size;
  };
  while (at < text.size()) {
    const char c = text[at];
    const bool equals_follows = at + 1 < text.size() && text[at + 1] == '=';
    if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
      ++at;
    } else if (c == '(') {
      add(Token::Kind::kOpen, 1);
    } else if (c == ')') {
      add(Token::Kind::kClose, 1);
    } else if (c == '=' || c == ':') {
      add(Token::Kind::kOperator, 1);
    } else if (c == '<' || c == '>') {
      add(Token::Kind::kOperator, equals_follows ? 2 : 1);
    } else if (c == '!') {
      if (!equals_follows) return Wrong(at, "is '!'; must be != or NOT");
      add(Token::Kind::kOperator, 2);
    } else if (c == '"' || c == '\'') {
      const size_t begin = at;
      absl::StatusOr<std::string> value = ReadString(text, at);
      if (!value.ok()) return value.status();
      tokens.push_back({Token::Kind::kString, *std::move(value), begin});
    } else {
      size_t size = 0;
      while (at + size < text.size() && !EndsWord(text[at + size])) ++size;
      add(Token::Kind::kWord, size);
    }
  }
  tokens.push_back({Token::Kind::kEnd, "", text.size()});
  return tokens;
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  absl::StatusOr<JobFilter> Parse() {
    if (Next().kind == Token::Kind::kEnd) return JobFilter();
    absl::StatusOr<JobFilter> filter = Expression(0);
    if (!filter.ok()) return filter;
    if (Next().kind != Token::Kind::kEnd) {
      return Wrong(Next().position, absl::StrCat(Shown(Next()), "; must be AND, OR or the end"));
    }
    return filter;
  }

 private:
  const Token& Next() const { return tokens_[at_]; }

  bool NextIsWord(std::string_view word) const {
    return Next().kind == Token::Kind::kWord && Next().text == word;
  }

  bool TakeWord(std::string_view word) {
    if (!NextIsWord(word)) return false;
    ++at_;
    return true;
  }

  // Parses conditions joined by AND, or by nothing.
  absl::StatusOr<JobFilter> Expression(int depth) {
    JobFilter all{JobFilter::Kind::kAnd};
    for (;;) {
      absl::StatusOr<JobFilter> factor = Factor(depth);
      if (!factor.ok()) return factor;
      all.operands.push_back(*std::move(factor));
      if (TakeWord("AND")) continue;
      if (Next().kind == Token::Kind::kEnd || Next().kind == Token::Kind::kClose) break;
    }
    return Simplified(std::move(all));
  }

  // Parses conditions joined by OR.
  absl::StatusOr<JobFilter> Factor(int depth) {
    JobFilter any{JobFilter::Kind::kOr};
    do {
      absl::StatusOr<JobFilter> term = Term(depth);
      if (!term.ok()) return term;
      any.operands.push_back(*std::move(term));
    } while (TakeWord("OR"));
    return Simplified(std::move(any));
  }

  absl::StatusOr<JobFilter> Term(int depth) {
    const size_t position = Next().position;
    bool negated = TakeWord("NOT");
    if (!negated && Next().kind == Token::Kind::kWord && Next().text.front() == '-') {
      negated = true;
      tokens_[at_].text.erase(0, 1);
      ++tokens_[at_].position;
      if (Next().text.empty()) ++at_;
    }
    absl::StatusOr<JobFilter> simple =
        Next().kind == Token::Kind::kOpen ? Composite(depth, position) : Comparison();
    if (!simple.ok() || !negated) return simple;
    return Not(*std::move(simple));
  }

  absl::StatusOr<JobFilter> Composite(int depth, size_t position) {
    if (depth == kMaxDepth) {
      return Wrong(position, absl::StrCat("opens more than ", kMaxDepth, " parentheses"));
    }
    ++at_;
    absl::StatusOr<JobFilter> inner = Expression(depth + 1);
    if (!inner.ok()) return inner;
    if (Next().kind != Token::Kind::kClose) {
      return Wrong(Next().position, absl::StrCat(Shown(Next()), "; must be ')'"));
    }
    ++at_;
    return inner;
  }

  absl::StatusOr<JobFilter> Comparison() {
    if (++comparisons_ > kMaxComparisons) {
      return Wrong(Next().position,
                   absl::StrCat("begins one more than ", kMaxComparisons, " comparisons"));
    }
    JobFilter comparison{JobFilter::Kind::kCompare};
    absl::StatusOr<bool> ordered = ReadField(comparison);
    if (!ordered.ok()) return ordered.status();
    const Token op = Next();
    if (op.kind != Token::Kind::kOperator) {
      return Wrong(op.position, absl::StrCat(Shown(op), "; must be an operator, such as ="));
    }
    ++at_;
    bool negated = false;
    if (op.text == "=") {
      comparison.op = FilterOperator::kEqual;
    } else if (op.text == "!=") {
      negated = true;
    } else if (op.text == ":") {
      return Has(std::move(comparison), op.position);
    } else if (!*ordered) {
      return Wrong(op.position, absl::StrCat(Shown(op), "; must be = or != for this field"));
    } else if (op.text == "<") {
      comparison.op = FilterOperator::kLess;
    } else if (op.text == "<=") {
      comparison.op = FilterOperator::kLessOrEqual;
    } else if (op.text == ">") {
      comparison.op = FilterOperator::kGreater;
    } else {
      comparison.op = FilterOperator::kGreaterOrEqual;
    }
    if (absl::Status status = ReadValue(comparison); !status.ok()) return status;
    if (negated) return Not(std::move(comparison));
    return comparison;
  }

  // Parses "FIELD" or "labels.KEY"; returns whether the field can be compared with < and >.
  absl::StatusOr<bool> ReadField(JobFilter& comparison) {
    constexpr std::string_view kLabels = "labels";
    const Token field = Next();
    if (field.kind == Token::Kind::kWord && !IsKeyword(field.text)) {
      ++at_;
      for (const FieldFacts& facts : kFieldFacts) {
        if (field.text != facts.name) continue;
        comparison.field = facts.field;
        return facts.ordered;
      }
      comparison.field = JobField::kLabel;
      if (field.text == kLabels) return false;  // the text has the form labels:KEY
      if (field.text == "labels.") {
        // The text has the form labels."KEY".
        if (Next().kind == Token::Kind::kString) {
          comparison.label = Next().text;
          ++at_;
          return false;
        }
      } else if (field.text.starts_with("labels.")) {
        comparison.label = field.text.substr(kLabels.size() + 1);
        return false;
      }
    }
    return Wrong(field.position, absl::StrCat(Shown(field), "; must be a field: ", kFields));
  }

  // Parses what follows "labels" in "labels:KEY".
  absl::StatusOr<JobFilter> Has(JobFilter comparison, size_t position) {
    if (comparison.field != JobField::kLabel || !comparison.label.empty()) {
      return Wrong(position, "is ':', which is only for labels:KEY, the jobs that have the label");
    }
    const Token key = Next();
    if (!IsValue(key))
      return Wrong(key.position, absl::StrCat(Shown(key), "; must be a label's key"));
    ++at_;
    comparison.op = FilterOperator::kHas;
    comparison.label = key.text;
    return comparison;
  }

  absl::Status ReadValue(JobFilter& comparison) {
    if (comparison.field == JobField::kLabel && comparison.label.empty()) {
      return Wrong(Next().position,
                   "compares all labels; must be labels.KEY = VALUE or labels:KEY");
    }
    const Token value = Next();
    if (!IsValue(value))
      return Wrong(value.position, absl::StrCat(Shown(value), "; must be a value"));
    ++at_;
    switch (comparison.field) {
      case JobField::kState: {
        wan::v1::JobState state = wan::v1::JOB_STATE_UNSPECIFIED;
        if (!wan::v1::JobState_Parse(value.text, &state) &&
            !wan::v1::JobState_Parse(absl::StrCat("JOB_STATE_", value.text), &state)) {
          state = wan::v1::JOB_STATE_UNSPECIFIED;
        }
        if (state == wan::v1::JOB_STATE_UNSPECIFIED) {
          return Wrong(value.position, absl::StrCat(Shown(value), "; must be ", kStates));
        }
        comparison.number = state;
        return absl::OkStatus();
      }
      case JobField::kPriority:
        if (!absl::SimpleAtoi(value.text, &comparison.number)) {
          return Wrong(value.position, absl::StrCat(Shown(value), "; must be a whole number"));
        }
        return absl::OkStatus();
      case JobField::kCreateTime:
      case JobField::kEndTime: {
        absl::Time time;
        std::string error;
        if (!absl::ParseTime(absl::RFC3339_full, value.text, &time, &error)) {
          return Wrong(
              value.position,
              absl::StrCat(Shown(value),
                           "; must be a time, such as \"2026-01-31T12:00:00Z\", in quotes"));
        }
        comparison.number = absl::ToUnixMicros(time);
        return absl::OkStatus();
      }
      case JobField::kModel: {
        constexpr std::string_view kModels = "models/";
        comparison.text =
            value.text.starts_with(kModels) ? value.text.substr(kModels.size()) : value.text;
        return absl::OkStatus();
      }
      case JobField::kOwner:
      case JobField::kLabel:
        comparison.text = value.text;
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  static bool IsKeyword(std::string_view word) {
    return word == "AND" || word == "OR" || word == "NOT";
  }

  static bool IsValue(const Token& token) {
    return token.kind == Token::Kind::kString ||
           (token.kind == Token::Kind::kWord && !IsKeyword(token.text));
  }

  static JobFilter Not(JobFilter filter) {
    JobFilter negation{JobFilter::Kind::kNot};
    negation.operands.push_back(std::move(filter));
    return negation;
  }

  static JobFilter Simplified(JobFilter filter) {
    if (filter.operands.size() > 1) return filter;
    JobFilter only = std::move(filter.operands.front());
    return only;
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int comparisons_ = 0;
};

}  // namespace

absl::StatusOr<JobFilter> ParseJobFilter(std::string_view text) {
  if (text.size() > kMaxFilterBytes) {
    return InvalidFields({{"filter", absl::StrCat("has ", text.size(), " bytes; must have at most ",
                                                  kMaxFilterBytes)}});
  }
  absl::StatusOr<std::vector<Token>> tokens = Tokenise(text);
  if (!tokens.ok()) return tokens.status();
  return Parser(*std::move(tokens)).Parse();
}

absl::StatusOr<ListOrder> ParseJobOrder(std::string_view text) {
  ListOrder order;
  const std::vector<std::string> words =
      absl::StrSplit(absl::string_view(text.data(), text.size()), ' ', absl::SkipEmpty());
  if (words.empty()) return order;
  constexpr std::array<std::pair<std::string_view, JobOrderField>, 3> kOrders = {{
      {"create_time", JobOrderField::kCreateTime},
      {"end_time", JobOrderField::kEndTime},
      {"priority", JobOrderField::kPriority},
  }};
  order.descending = words.size() == 2 && words[1] == "desc";
  const bool has_direction =
      words.size() == 1 || order.descending || (words.size() == 2 && words[1] == "asc");
  for (const auto& [name, field] : kOrders) {
    if (words[0] != name || !has_direction) continue;
    order.field = field;
    return order;
  }
  return InvalidFields(
      {{"order_by", absl::StrCat("is ", Shown(text),
                                 "; must be create_time, end_time or priority, then asc (the "
                                 "default) or desc")}});
}

}  // namespace wan::server
