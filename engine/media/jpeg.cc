#include "engine/media/jpeg.h"

#include <jerror.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace wan {
namespace {

JpegErrors& ErrorsOf(j_common_ptr cinfo) { return *reinterpret_cast<JpegErrors*>(cinfo->err); }

[[noreturn]] void OnFatalError(j_common_ptr cinfo) {
  JpegErrors& errors = ErrorsOf(cinfo);
  errors.manager.format_message(cinfo, errors.message);
  std::longjmp(errors.escape, 1);
}

// Returns whether a warning (level -1) means that pixels were lost or invented. Files of many
// cameras cause warnings that are harmless, for example about stray bytes between markers.
bool MeansDamage(int code) {
  constexpr int kCodes[] = {JWRN_JPEG_EOF, JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE, JWRN_MUST_RESYNC,
                            JWRN_ARITH_BAD_CODE};
  return std::find(std::begin(kCodes), std::end(kCodes), code) != std::end(kCodes);
}

void OnMessage(j_common_ptr cinfo, int level) {
  JpegErrors& errors = ErrorsOf(cinfo);
  if (level >= 0 || errors.damaged || !MeansDamage(errors.manager.msg_code)) return;
  errors.damaged = true;
  errors.manager.format_message(cinfo, errors.message);
}

}  // namespace

jpeg_error_mgr* JpegErrors::Install() {
  jpeg_std_error(&manager);
  manager.error_exit = OnFatalError;
  manager.emit_message = OnMessage;
  message[0] = '\0';
  damaged = false;
  return &manager;
}

void JpegErrors::Fail(const char* reason) {
  std::strncpy(message, reason, sizeof message - 1);
  message[sizeof message - 1] = '\0';
  std::longjmp(escape, 1);
}

}  // namespace wan
