#include "server/logging/logger.h"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"

namespace wan::server {
namespace {

using Json = nlohmann::ordered_json;

std::string_view NameOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

std::string Dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json ToJson(const LogField::Value& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

std::string JsonLine(const std::string& time, LogLevel level, std::string_view message,
                     std::initializer_list<LogField> fields) {
  Json line;
  line["time"] = time;
  line["level"] = NameOf(level);
  line["message"] = message;
  for (const LogField& field : fields) {
    if (!field.key.empty()) line[std::string(field.key)] = ToJson(field.value);
  }
  return Dumped(line) + '\n';
}

std::string TextLine(const std::string& time, LogLevel level, std::string_view message,
                     std::initializer_list<LogField> fields) {
  std::string line = time + ' ' + absl::AsciiStrToUpper(std::string(NameOf(level))) + ' ';
  // Escape the message like a JSON string, but without quotes, so that a line break in it does not
  // begin a new entry.
  const std::string quoted = Dumped(Json(message));
  line += quoted.substr(1, quoted.size() - 2);
  for (const LogField& field : fields) {
    if (field.key.empty()) continue;
    line += ' ';
    line += field.key;
    line += '=';
    line += Dumped(ToJson(field.value));
  }
  return line + '\n';
}

LogFormat Chosen(LogFormat format) {
  if (format != LogFormat::kAuto) return format;
  return isatty(STDERR_FILENO) != 0 ? LogFormat::kText : LogFormat::kJson;
}

}  // namespace

Logger::Logger(LogLevel level, LogFormat format, const Clock& clock, Writer writer)
    : level_(level), format_(Chosen(format)), clock_(clock), writer_(std::move(writer)) {}

Logger::Logger(LogLevel level, LogFormat format, const Clock& clock,
               std::unique_ptr<LineQueue> queue)
    : level_(level), format_(Chosen(format)), clock_(clock), queue_(std::move(queue)) {
  queue_->Start([this](int64_t dropped) {
    return LineOf(LogLevel::kWarning, "log lines were dropped", {{"count", dropped}});
  });
}

std::string Logger::LineOf(LogLevel level, std::string_view message,
                           std::initializer_list<LogField> fields) const {
  const std::string time =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", clock_.Now(), absl::UTCTimeZone());
  return format_ == LogFormat::kJson ? JsonLine(time, level, message, fields)
                                     : TextLine(time, level, message, fields);
}

void Logger::Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (level < level_) return;
  std::string line = LineOf(level, message, fields);
  if (queue_ != nullptr) {
    queue_->Push(std::move(line));
    return;
  }
  absl::MutexLock lock(&mutex_);
  writer_(line);
}

void Logger::SetFormat(LogFormat format) { format_ = Chosen(format); }

void Logger::Flush(absl::Duration most) {
  if (queue_ != nullptr) queue_->Flush(most);
}

int64_t Logger::dropped() const { return queue_ == nullptr ? 0 : queue_->dropped(); }

LimitedLog::LimitedLog(Logger& logger, const Clock& clock, std::string source, int most,
                       absl::Duration window)
    : logger_(logger),
      clock_(clock),
      source_(std::move(source)),
      most_(most),
      window_nanos_(absl::ToInt64Nanoseconds(window)) {}

void LimitedLog::Log(LogLevel level, std::string_view message, std::string_view file, int line) {
  int64_t left_out = 0;
  {
    absl::MutexLock lock(&mutex_);
    const int64_t now = clock_.MonotonicNanos();
    if (in_window_ == 0 || now >= window_end_) {
      window_end_ = now + window_nanos_;
      in_window_ = 0;
      left_out = std::exchange(left_out_, 0);
    }
    if (in_window_ == most_) {
      ++left_out_;
      return;
    }
    ++in_window_;
  }
  if (left_out > 0) {
    logger_.Log(LogLevel::kWarning, "messages were left out",
                {{"source", source_}, {"count", left_out}});
  }
  const bool known = !file.empty();
  logger_.Log(level, message,
              {{"source", source_},
               known ? LogField("file", file) : LogField(),
               known ? LogField("line", line) : LogField()});
}

std::unique_ptr<LineQueue> StandardError(Clock& clock) {
  const auto write = [](std::string_view line) {
    // Write each line by one call if possible, so that lines do not mix with those of other
    // processes that share the descriptor. If the write fails, there is nowhere to report the
    // failure.
    while (!line.empty()) {
      const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return written < 0 ? errno : EIO;
      line.remove_prefix(static_cast<size_t>(written));
    }
    return 0;
  };
  return std::make_unique<LineQueue>(write, clock);
}

}  // namespace wan::server
