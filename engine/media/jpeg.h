// Turns libjpeg's errors into statuses. For the JPEG files of this directory only.
//
// libjpeg reports a fatal error through a handler that must not return. So every function that
// calls libjpeg calls setjmp first, and no frame that longjmp leaves has an object with a
// destructor.
#pragma once

// jpeglib.h needs the headers with FILE and size_t before it.
// clang-format off
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on

namespace wan {

struct JpegErrors {
  jpeg_error_mgr manager;  // first member: libjpeg's pointer to it also points to the whole struct
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];  // text of the fatal error, or of the first damage
  bool damaged;                   // the data is broken, but libjpeg could continue

  // Prepares the handlers; assign the result to cinfo.err.
  jpeg_error_mgr* Install();

  // Ends the current call into libjpeg.
  [[noreturn]] void Fail(const char* reason);
};

}  // namespace wan
