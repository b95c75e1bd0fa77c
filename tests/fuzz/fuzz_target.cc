#include "tests/fuzz/fuzz_target.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace wan {

std::span<const FuzzTarget> FuzzTargets() {
  static constexpr FuzzTarget kTargets[] = {
      {"config", FuzzConfig},
      {"exif", FuzzExif},
      {"gguf", FuzzGguf},
      {"http2", FuzzHttp2},
      {"http_form", FuzzHttpForm},
      {"image", FuzzImage},
      {"job_filter", FuzzJobFilter},
      {"json", FuzzJson},
      {"page_token", FuzzPageToken},
      {"pickle", FuzzPickle},
      {"prompt", FuzzPrompt},
      {"request", FuzzRequest},
      {"safetensors", FuzzSafetensors},
      {"safetensors_index", FuzzSafetensorsIndex},
      {"savepoint", FuzzSavepoint},
      {"scaled_weights", FuzzScaledWeights},
      {"store", FuzzStore},
      {"token_file", FuzzTokenFile},
      {"torch_archive", FuzzTorchArchive},
  };
  return kTargets;
}

void Require(bool holds, std::string_view promise) {
  if (holds) return;
  std::fprintf(stderr, "a promise does not hold: %s\n", std::string(promise).c_str());
  std::abort();
}

void RequireCode(const absl::Status& status, std::initializer_list<absl::StatusCode> codes) {
  Require(std::find(codes.begin(), codes.end(), status.code()) != codes.end(),
          absl::StrCat("the reader's errors are those of its header, not ", status.ToString()));
  Require(status.ok() || !status.message().empty(), "every error has a message");
}

std::string_view TextOf(FuzzInput input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

MemoryFile::MemoryFile(FuzzInput input) : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
  const bool written = descriptor_ >= 0 && write(descriptor_, input.data(), input.size()) ==
                                               static_cast<ssize_t>(input.size());
  Require(written, "this machine holds the input in a file");
  path_ = absl::StrCat("/proc/self/fd/", descriptor_);
}

MemoryFile::~MemoryFile() { close(descriptor_); }

}  // namespace wan
