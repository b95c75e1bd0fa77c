// Structured logs: one line an entry, JSON or text.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"

namespace wan::server {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kJson, kText };

// One named value of an entry. Text need not be valid UTF-8: what is not is replaced.
struct LogField {
  using Value = std::variant<std::string, int64_t, double, bool>;

  LogField(std::string_view field_key, std::string_view text)
      : key(field_key), value(std::string(text)) {}
  LogField(std::string_view field_key, const char* text)
      : LogField(field_key, std::string_view(text)) {}
  LogField(std::string_view field_key, int64_t number) : key(field_key), value(number) {}
  LogField(std::string_view field_key, int number)
      : LogField(field_key, static_cast<int64_t>(number)) {}
  LogField(std::string_view field_key, double number) : key(field_key), value(number) {}
  LogField(std::string_view field_key, bool truth) : key(field_key), value(truth) {}

  std::string_view key;
  Value value;
};

// Thread-safe; entries never interleave.
//
// JSON: {"time":"2026-01-01T00:00:00.000Z","level":"info","message":...,FIELD:...}
// Text: 2026-01-01T00:00:00.000Z INFO message field=value
class Logger {
 public:
  // Receives one line with its newline.
  using Writer = std::function<void(std::string_view line)>;

  // Entries below `level` are dropped. The clock must outlive the logger.
  Logger(LogLevel level, LogFormat format, const Clock& clock, Writer writer);
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

 private:
  const LogLevel level_;
  const LogFormat format_;
  const Clock& clock_;
  const Writer writer_;
  absl::Mutex mutex_;  // one writer call at a time
};

// Writes lines to the process' standard error.
Logger::Writer StandardError();

// Lets a bounded number of entries through, for messages that callers can cause at will.
// Thread-safe.
class LimitedLog {
 public:
  // At most `most` entries in each `window`, which begins with its first entry. What is left out is
  // counted, and told in an entry of its own before the first one of the next window. Logger and
  // clock must outlive the log; `source` names whose messages they are.
  LimitedLog(Logger& logger, const Clock& clock, std::string source, int most = 20,
             absl::Duration window = absl::Seconds(10));

  void Log(LogLevel level, std::string_view message, std::string_view file, int line);

 private:
  Logger& logger_;
  const Clock& clock_;
  const std::string source_;
  const int most_;
  const int64_t window_nanos_;
  absl::Mutex mutex_;
  int64_t window_end_ ABSL_GUARDED_BY(mutex_) = 0;
  int in_window_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Sends what gRPC and protobuf log themselves (broken handshakes, text that is not UTF-8) through
// `logger`, a bounded number of entries of each, for the rest of the process; logger and clock must
// live as long. Called once.
void RouteLibraryLogs(Logger& logger, const Clock& clock);

}  // namespace wan::server
