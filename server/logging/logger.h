// Writes structured logs, one line for each entry, as JSON or text.
#pragma once

#include <atomic>
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

// One named value of an entry. Bytes of a text that are not valid UTF-8 are replaced.
struct LogField {
  using Value = std::variant<std::string, int64_t, double, bool>;

  // One that an entry does not have.
  LogField() = default;
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

// Thread-safe. Lines of different threads do not mix.
//
// JSON: {"time":"2026-01-01T00:00:00.000Z","level":"info","message":...,FIELD:...}
// Text: 2026-01-01T00:00:00.000Z INFO message field=value
class Logger {
 public:
  // Receives one line, with its newline. Called by one thread at a time.
  using Writer = std::function<void(std::string_view line)>;

  // Drops entries below `level`. `clock` must outlive the logger.
  Logger(LogLevel level, LogFormat format, const Clock& clock, Writer writer);
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

  // From the next entry on. Any thread.
  void SetLevel(LogLevel level) { level_ = level; }
  void SetFormat(LogFormat format) { format_ = format; }

 private:
  std::atomic<LogLevel> level_;
  std::atomic<LogFormat> format_;
  const Clock& clock_;
  const Writer writer_;
  absl::Mutex mutex_;  // one writer call at a time
};

// Returns a writer to the standard error of the process. It ignores lines that cannot be written.
Logger::Writer StandardError();

// Logs at most a number of entries in a time, for messages that callers can cause at will.
// Thread-safe.
class LimitedLog {
 public:
  // Logs at most `most` entries in each `window`; a window begins with its first entry. The number
  // of dropped entries is logged before the first entry of the next window. `source` becomes a
  // field of every entry. `logger` and `clock` must outlive this object.
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

// Call once. For the rest of the process, sends the messages of gRPC and protobuf (a failed
// handshake, a text that is not UTF-8) to `logger`, at most 20 of each library in 10 s. `logger`
// and `clock` must live until the process ends.
void RouteLibraryLogs(Logger& logger, const Clock& clock);

}  // namespace wan::server
