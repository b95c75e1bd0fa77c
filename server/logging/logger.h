// Writes structured log entries, one line each, as JSON or text.
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
enum class LogFormat { kJson, kText };

// One named value of an entry. Bytes of a text that are not valid UTF-8 are replaced.
struct LogField {
  using Value = std::variant<std::string, int64_t, double, bool>;

  // A field that the entry leaves out.
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
// says how many.
//
// JSON: {"time":"2026-01-01T00:00:00.000Z","level":"info","message":...,FIELD:...}
// Text: 2026-01-01T00:00:00.000Z INFO message field=value
class Logger {
 public:
  // Receives one line with its newline. Called by one thread at a time.
  using Writer = std::function<void(std::string_view line)>;

  // Drops entries below `level`. `clock` must outlive the logger. Log calls the writer on the
  // calling thread.
  Logger(LogLevel level, LogFormat format, const Clock& clock, Writer writer);
  // The same with a queue, so that Log does not wait. The logger starts the queue.
  Logger(LogLevel level, LogFormat format, const Clock& clock, std::unique_ptr<LineQueue> queue);
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

  // Waits at most `most` until all earlier entries are written. Call it before the process ends
  // without destructors.
  void Flush(absl::Duration most);

  // Number of lines dropped by the queue since the start; 0 without a queue.
  int64_t dropped() const;

  // Null if the logger has no queue.
  const LineQueue* queue() const { return queue_.get(); }

  // Take effect with the next entry. Any thread may call them.
  void SetLevel(LogLevel level) { level_ = level; }
  void SetFormat(LogFormat format) { format_ = format; }

 private:
  std::string LineOf(LogLevel level, std::string_view message,
                     std::initializer_list<LogField> fields) const;

  std::atomic<LogLevel> level_;
  std::atomic<LogFormat> format_;
  const Clock& clock_;
  const Writer writer_;                     // null with a queue
  absl::Mutex mutex_;                       // guards calls of the writer
  const std::unique_ptr<LineQueue> queue_;  // last: its thread calls the logger
};

// Makes a queue that writes to standard error; lines that cannot be written are lost.
std::unique_ptr<LineQueue> StandardError(Clock& clock);

// Limits the rate of entries, for messages that callers can provoke. Thread-safe.
class LimitedLog {
 public:
  // Logs at most `most` entries in each `window`; a window begins with its first entry. The number
  // of dropped entries is logged before the first entry of the next window. `source` becomes a
  // field of every entry. `logger` and `clock` must outlive this object.
  LimitedLog(Logger& logger, const Clock& clock, std::string source, int most = 20,
             absl::Duration window = absl::Seconds(10));

  // An empty `file` means that the message's origin is unknown.
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

// Call it once. Sends to `logger` the messages of gRPC and protobuf, and what libraries write to
// std::cerr and std::clog, such as LibTorch's warnings; at most 20 entries of each source in 10 s.
// `logger` and `clock` must live until the process ends.
void RouteLibraryLogs(Logger& logger, const Clock& clock);

// Call it once. Makes a crash (abort, segmentation fault) wait up to a second until the lines in
// the logger's queue are written, because they may tell the cause. The logger must live until the
// process ends.
void WriteLinesAtCrash(const Logger& logger);

}  // namespace wan::server
