// Makes a disk slow: loaded before the C library (LD_PRELOAD), it lets every write to a file and
// every sync take longer, WAN_SLOW_WRITE_MS and WAN_SLOW_SYNC_MS milliseconds. With WAN_SLOW_WHILE,
// the path of a file, only as long as that file exists.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void Delay(const char* name) {
  const char* const text = getenv(name);
  const char* const file = getenv("WAN_SLOW_WHILE");
  if (file != NULL && access(file, F_OK) != 0) return;
  const long milliseconds = text == NULL ? 0 : atol(text);
  const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static int IsFile(int descriptor) {
  struct stat facts;
  return fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode);
}

int fsync(int descriptor) {
  static int (*next)(int);
  if (next == NULL) next = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  Delay("WAN_SLOW_SYNC_MS");
  return next(descriptor);
}

int fdatasync(int descriptor) {
  static int (*next)(int);
  if (next == NULL) next = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  Delay("WAN_SLOW_SYNC_MS");
  return next(descriptor);
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
  static ssize_t (*next)(int, const void*, size_t);
  if (next == NULL) next = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  if (IsFile(descriptor)) Delay("WAN_SLOW_WRITE_MS");
  return next(descriptor, bytes, size);
}

ssize_t pwrite64(int descriptor, const void* bytes, size_t size, off64_t offset) {
  static ssize_t (*next)(int, const void*, size_t, off64_t);
  if (next == NULL) {
    next = (ssize_t(*)(int, const void*, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
  }
  Delay("WAN_SLOW_WRITE_MS");
  return next(descriptor, bytes, size, offset);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t offset) {
  return pwrite64(descriptor, bytes, size, offset);
}
