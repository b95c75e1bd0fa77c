#include "engine/media/libav.h"

#include <cerrno>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "engine/api/storage_error.h"

namespace wan {
namespace {

thread_local std::string* first_error_of_thread = nullptr;

void OnLog(void* object, int level, const char* format, va_list arguments) {
  if (level > AV_LOG_ERROR || first_error_of_thread == nullptr || !first_error_of_thread->empty()) {
    return;
  }
  char line[512];
  int print_prefix = 1;
  av_log_format_line2(object, level, format, arguments, line, sizeof line, &print_prefix);
  *first_error_of_thread = line;
  while (!first_error_of_thread->empty() && first_error_of_thread->back() == '\n') {
    first_error_of_thread->pop_back();
  }
}

}  // namespace

LibavLog::LibavLog() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_callback(OnLog); });
  first_error_of_thread = &first_error_;
}

LibavLog::~LibavLog() { first_error_of_thread = nullptr; }

std::string LibavErrorText(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = "";
  av_strerror(code, text, sizeof text);
  return text;
}

absl::Status LibavError(int code, const std::string& what, const LibavLog& log) {
  std::string message = absl::StrCat(what, ": ", LibavErrorText(code));
  if (!log.first_error().empty()) absl::StrAppend(&message, " (", log.first_error(), ")");
  // FFmpeg's own codes consist of four letters, so they are far from any errno. FFmpeg also returns
  // EINVAL for internal errors, so EINVAL does not mean that the request was wrong.
  const int system_error = AVUNERROR(code);
  if (system_error > 0 && system_error < 4096 && system_error != EINVAL) {
    return WithStorageReason(absl::Status(absl::ErrnoToStatusCode(system_error), message),
                             system_error);
  }
  return absl::InternalError(message);
}

}  // namespace wan
