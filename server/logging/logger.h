// Writes structured log entries, each on one line, as JSON or text.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/logging/line_queue.h"

namespace wan::server {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
// kAuto is kText if standard error is a terminal, otherwise kJson.
enum class LogFormat { kAuto, kJson, kText };

// A named value in a log entry. In a text, bytes that are not valid UTF-8 are replaced.
struct LogField {
  using Value = std::variant<std::string, int64_t, double, bool>;

  // Makes a field without a value, which the entry leaves out.
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

// Thread-safe. Lines of different threads do not mix. If the queue has dropped lines, a later line
// has the number of dropped lines.
//
// JSON: {"time":"2026-01-01T00:00:00.000Z","level":"info","message":...,FIELD:...}
// Text: 2026-01-01T00:00:00.000Z INFO message field=value
class Logger {
 public:
  // Receives one line, including the newline at its end. Only one thread at a time calls the
  // writer.
  using Writer = std::function<void(std::string_view line)>;

  // The logger drops entries below `level`. `clock` must outlive the logger. Log calls the writer
  // on the thread that calls Log.
  Logger(LogLevel level, LogFormat format, const Clock& clock, Writer writer);
  // Makes a logger with a queue, so that Log does not wait. The logger starts the queue.
  Logger(LogLevel level, LogFormat format, const Clock& clock, std::unique_ptr<LineQueue> queue);
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

  // Waits until all earlier entries are written, but not longer than `most`. Call Flush before a
  // process ends without running destructors.
  void Flush(absl::Duration most);

  // How many lines the queue has dropped since the start; 0 if the logger has no queue.
  int64_t dropped() const;

  // Returns the queue; null if the logger has none.
  const LineQueue* queue() const { return queue_.get(); }

  // SetLevel and SetFormat take effect with the next entry. Any thread may call SetLevel and
  // SetFormat.
  void SetLevel(LogLevel level) { level_ = level; }
  void SetFormat(LogFormat format);

 private:
  std::string LineOf(LogLevel level, std::string_view message,
                     std::initializer_list<LogField> fields) const;

  std::atomic<LogLevel> level_;
  std::atomic<LogFormat> format_;  // never kAuto
  const Clock& clock_;
  const Writer writer_;                     // null if the logger has a queue
  absl::Mutex mutex_;                       // lets only one thread at a time call the writer
  const std::unique_ptr<LineQueue> queue_;  // declared last: its thread calls the logger
};

// Makes a queue that writes to standard error; a line that cannot be written is lost.
std::unique_ptr<LineQueue> StandardError(Clock& clock);

// Limits how many entries a source may log, for messages that callers can provoke. Thread-safe.
class LimitedLog {
 public:
  // Logs at most `most` entries in each `window`; a window begins with its first entry. The first
  // entry of the next window follows an entry with the number of dropped entries. Every entry has
  // `source` as a field. `logger` and `clock` must outlive this object.
  LimitedLog(Logger& logger, const Clock& clock, std::string source, int most = 20,
             absl::Duration window = absl::Seconds(10));

  // `file` is the source file of the library that logs the message; empty: unknown.
  void Log(LogLevel level, std::string_view message, std::string_view file = {}, int line = 0);

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

// Makes `logger` receive the messages of gRPC and protobuf, and the text that libraries write to
// std::cerr and std::clog, such as LibTorch's warnings; at most 20 entries of each source in 10 s.
// Call RouteLibraryLogs at most once. `logger` and `clock` must live until the process ends.
void RouteLibraryLogs(Logger& logger, const Clock& clock);

// Makes a crash (abort, segmentation fault) wait up to a second until the lines in the logger's
// queue are written, because these lines may tell the cause. Call WriteLinesAtCrash at most once.
// The logger must live until the process ends.
void WriteLinesAtCrash(const Logger& logger);

}  // namespace wan::server
