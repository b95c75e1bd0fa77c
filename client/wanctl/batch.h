// Makes the requests of `wanctl submit --from FILE --count N` and `wanctl generate --count N`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

// Maximum number of requests in one call of SubmitBatch.
constexpr int kMostInBatch = 100;

// Returns request number `index` (from 0) of several that are made from `request`: each has its own
// seed and request_id, if these are given. A pure function.
wan::v1::GenerationRequest Numbered(const wan::v1::GenerationRequest& request, int index);

// A request of a file, and the video's length in seconds, from which RequestDefaults computes the
// request's frames.
struct BatchRow {
  wan::v1::GenerationRequest request;
  std::optional<double> seconds;
};

// Returns the requests that a file describes, `count` of each. Every request begins as a copy of
// `base`. The ending of `path` determines the file's format:
//
//   .txt    a prompt in each line; empty lines count for nothing
//   .jsonl  a JSON object in each line, {"prompt": "A red cat.", "steps": 20}
//   .csv    commas between the values (RFC 4180); the first row has the fields' names
//
// The fields are those of RequestFields, and `seconds`. Fails with INVALID_ARGUMENT if the file
// cannot be read, has no request, or a request has no prompt or a wrong value; the message names
// the line.
absl::StatusOr<std::vector<BatchRow>> ReadBatch(const std::string& path, const BatchRow& base,
                                                int32_t count);

// The image and the latents that all requests of a command have. The object keeps the files once,
// because all requests together with their files may be larger than the memory.
class SharedFiles {
 public:
  // Moves the image and the latents out of the request.
  explicit SharedFiles(wan::v1::GenerationRequest& request);

  void AddTo(wan::v1::GenerationRequest& request) const;
  size_t bytes() const;

 private:
  wan::v1::GenerationRequest files_;
};

// Returns how many of the requests, from the first on, fit into one call of SubmitBatch, whose size
// a server limits; at least 1. Each request still lacks `file_bytes` bytes of files.
size_t FitIntoBatch(std::span<const wan::v1::GenerationRequest> requests, size_t file_bytes);

}  // namespace wan::client
