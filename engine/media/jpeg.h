// Turns libjpeg's errors into statuses. Only the JPEG files of this directory include this header.
//
// libjpeg reports a fatal error to a handler, which must not return. So every function that calls
// libjpeg first calls setjmp. No function that longjmp leaves may have an object with a destructor.
#pragma once

// jpeglib.h uses FILE and size_t, so their headers must come before it.
// clang-format off
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on

namespace wan {

struct JpegErrors {
  jpeg_error_mgr manager;  // first member: a pointer to it also points to the whole struct
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];  // the text of the fatal error, or of the first damage
  bool damaged;                   // true: the data is broken, but libjpeg could go on

  // Prepares the handlers. Assign the result to cinfo.err.
  jpeg_error_mgr* Install();

  // Ends the call into libjpeg that is running, by longjmp.
  [[noreturn]] void Fail(const char* reason);
};

}  // namespace wan
