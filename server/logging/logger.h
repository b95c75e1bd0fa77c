// Writes structured logs, one line for each entry, as JSON or text.
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

// Thread-safe. Lines of different threads do not mix. A line that the logger's queue dropped is
// counted; the next line says how many were.
//
// JSON: {"time":"2026-01-01T00:00:00.000Z","level":"info","message":...,FIELD:...}
// Text: 2026-01-01T00:00:00.000Z INFO message field=value
class Logger {
 public:
  // Receives one line, with its newline. Called by one thread at a time.
  using Writer = std::function<void(std::string_view line)>;

  // Drops entries below `level`. `clock` must outlive the logger. The caller that logs an entry
  // waits for the writer.
  Logger(LogLevel level, LogFormat format, const Clock& clock, Writer writer);
  // The same with a queue, so that no caller waits. The logger starts the queue.
  Logger(LogLevel level, LogFormat format, const Clock& clock, std::unique_ptr<LineQueue> queue);
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

  // Waits, for at most `most`, until the entries so far are written: call it before the process
  // ends without destructors.
  void Flush(absl::Duration most);

  // Lines that the queue has dropped since the start; 0 without one.
  int64_t dropped() const;

  // Null without one.
  const LineQueue* queue() const { return queue_.get(); }

  // Takes effect with the next entry. Any thread.
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
  const std::unique_ptr<LineQueue> queue_;  // last: its thread makes lines
};

// Makes a queue that writes to standard error; lines that cannot be written are lost.
std::unique_ptr<LineQueue> StandardError(Clock& clock);

// Limits the rate of entries, for messages that callers can cause at will. Thread-safe.
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

// Call once. From then on `logger` gets the messages of gRPC and protobuf (a failed handshake, a
// text that is not UTF-8) and what libraries write to std::cerr and std::clog, such as LibTorch's
// warnings; at most 20 of each source in 10 s. `logger` and `clock` must live until the process
// ends.
void RouteLibraryLogs(Logger& logger, const Clock& clock);

// Call once. From then on a crash (abort, segmentation fault) waits up to a second until the lines
// in the logger's queue are written, because they say why. The logger must live until the process
// ends.
void WriteLinesAtCrash(const Logger& logger);

}  // namespace wan::server
