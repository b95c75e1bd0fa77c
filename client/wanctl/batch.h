// Makes the requests of `wanctl submit --from FILE --count N` and `wanctl generate --count N`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

// Most requests of one call of SubmitBatch.
constexpr int kMostInBatch = 100;

// Returns the request number `index`, counted from 0, of several that are made from one: a seed and
// a request_id, where given, differ from those of the others. A pure function.
wan::v1::GenerationRequest Numbered(const wan::v1::GenerationRequest& request, int index);

// Returns the requests that a file describes, `count` of each; each begins as a copy of `base`. The
// ending of `path` says what the file is:
//
//   .txt    a prompt in each line; empty lines count for nothing
//   .jsonl  a JSON object in each line, {"prompt": "A red cat.", "steps": 20}
//   .csv    commas between the values (RFC 4180); the first row has the fields' names
//
// The fields are those of RequestFields. Fails with INVALID_ARGUMENT if the file cannot be read,
// has no request, or a request has no prompt or a wrong value; the message names the line.
absl::StatusOr<std::vector<wan::v1::GenerationRequest>> ReadBatch(
    const std::string& path, const wan::v1::GenerationRequest& base, int32_t count);

}  // namespace wan::client
