// What reads bytes from outside, as functions that a fuzzer calls with inputs of its own.
//
// Each target holds its reader to what the reader's header promises, and ends the process where the
// reader breaks it; crashes, overflows and leaks are the sanitizers' part. wan_fuzz runs one target
// under libFuzzer (scripts/fuzz), and fuzz_corpus_test runs all of them over the inputs that were
// kept (corpus/TARGET.tar.xz).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace wan {

using FuzzInput = std::span<const uint8_t>;

struct FuzzTarget {
  std::string_view name;  // also of its archive in corpus/
  void (*run)(FuzzInput input);
};

// All targets, by name.
std::span<const FuzzTarget> FuzzTargets();

// The targets, by who writes what they read. A checkpoint's publisher: Safetensors,
// SafetensorsIndex, ScaledWeights, Gguf, TorchArchive, Pickle, Json. Callers: Image, Exif, Prompt,
// Request, JobFilter, PageToken, HttpForm, Http2. The server itself: Store (a row of the database:
// a job, an event, a report), Savepoint. The operator: Config, TokenFile.
void FuzzConfig(FuzzInput input);
void FuzzExif(FuzzInput input);
void FuzzGguf(FuzzInput input);
void FuzzHttp2(FuzzInput input);
void FuzzHttpForm(FuzzInput input);
void FuzzImage(FuzzInput input);
void FuzzJobFilter(FuzzInput input);
void FuzzJson(FuzzInput input);
void FuzzPageToken(FuzzInput input);
void FuzzPickle(FuzzInput input);
void FuzzPrompt(FuzzInput input);
void FuzzRequest(FuzzInput input);
void FuzzSafetensors(FuzzInput input);
void FuzzSafetensorsIndex(FuzzInput input);
void FuzzSavepoint(FuzzInput input);
void FuzzScaledWeights(FuzzInput input);
void FuzzStore(FuzzInput input);
void FuzzTokenFile(FuzzInput input);
void FuzzTorchArchive(FuzzInput input);

// Ends the process with `promise`, which did not hold, unless `holds`.
void Require(bool holds, std::string_view promise);

// Requires a status with one of these codes and, if it is an error, a message.
void RequireCode(const absl::Status& status, std::initializer_list<absl::StatusCode> codes);

std::string_view TextOf(FuzzInput input);

// A regular file in memory that holds the input, for readers that take a path.
class MemoryFile {
 public:
  explicit MemoryFile(FuzzInput input);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  // "/proc/self/fd/N"
  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace wan
