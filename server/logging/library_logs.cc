#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <atomic>
#include <iostream>
#include <streambuf>
#include <string>
#include <utility>

#include "server/logging/logger.h"

namespace wan::server {
namespace {

// The pointer is global, because the libraries accept only plain functions.
std::atomic<LimitedLog*> grpc_log{nullptr};
std::atomic<LimitedLog*> protobuf_log{nullptr};

LogLevel LevelOf(gpr_log_severity severity) {
  switch (severity) {
    case GPR_LOG_SEVERITY_DEBUG:
      return LogLevel::kDebug;
    case GPR_LOG_SEVERITY_INFO:
      return LogLevel::kInfo;
    case GPR_LOG_SEVERITY_ERROR:
      return LogLevel::kError;
  }
  return LogLevel::kError;
}

// Protobuf's errors are about requests that callers sent and that cannot be parsed, so they become
// warnings. After a fatal error protobuf itself ends the process.
LogLevel LevelOf(google::protobuf::LogLevel level) {
  switch (level) {
    case google::protobuf::LOGLEVEL_INFO:
      return LogLevel::kInfo;
    case google::protobuf::LOGLEVEL_WARNING:
    case google::protobuf::LOGLEVEL_ERROR:
      return LogLevel::kWarning;
    case google::protobuf::LOGLEVEL_FATAL:
      return LogLevel::kError;
  }
  return LogLevel::kError;
}

// Logs the text that is written to a C++ stream: each line becomes an entry. Each thread has its
// own unfinished line, because threads write to the stream without a lock.
class EntryBuffer final : public std::streambuf {
 public:
  EntryBuffer(Logger& logger, const Clock& clock, const char* source)
      : log_(logger, clock, source) {}

 private:
  // A longer line is split into several entries.
  static constexpr size_t kMostLineBytes = 4096;

  int_type overflow(int_type character) override {
    if (!traits_type::eq_int_type(character, traits_type::eof())) {
      Add(traits_type::to_char_type(character));
    }
    return traits_type::not_eof(character);
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    for (std::streamsize i = 0; i < count; ++i) Add(text[i]);
    return count;
  }
  void Add(char character) {
    thread_local std::string line;
    if (character != '\n') line += character;
    if (character != '\n' && line.size() < kMostLineBytes) return;
    const std::string whole = std::exchange(line, std::string());
    if (!whole.empty()) log_.Log(LogLevel::kWarning, whole);
  }

  LimitedLog log_;
};

void LogOfGrpc(gpr_log_func_args* args) {
  grpc_log.load()->Log(LevelOf(args->severity), args->message, args->file, args->line);
}

void LogOfProtobuf(google::protobuf::LogLevel level, const char* file, int line,
                   const std::string& message) {
  protobuf_log.load()->Log(LevelOf(level), message, file, line);
}

}  // namespace

void RouteLibraryLogs(Logger& logger, const Clock& clock) {
  // The object is never freed, because libraries may log while the process ends.
  grpc_log = new LimitedLog(logger, clock, "grpc");
  protobuf_log = new LimitedLog(logger, clock, "protobuf");
  auto* const entries = new EntryBuffer(logger, clock, "stderr");
  std::cerr.rdbuf(entries);
  std::clog.rdbuf(entries);
  gpr_set_log_function(LogOfGrpc);
  google::protobuf::SetLogHandler(LogOfProtobuf);
}

}  // namespace wan::server
