// Turns libjpeg's errors into statuses. Only the JPEG files of this directory may include it.
//
// libjpeg reports a fatal error by a call that must not return. Every function that calls into it
// therefore has one form: it calls setjmp first, and the frames that longjmp leaves hold no object
// with a destructor.
#pragma once

// jpeglib.h needs FILE and size_t before it.
// clang-format off
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on

namespace wan {

struct JpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg's pointer to it is a pointer to the whole
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];  // of the fatal error, or of the first damage
  bool damaged;                   // the data is broken, though libjpeg could go on

  // Readies the handlers; the result goes into cinfo.err.
  jpeg_error_mgr* Install();

  // Ends the current call into libjpeg.
  [[noreturn]] void Fail(const char* reason);
};

}  // namespace wan
