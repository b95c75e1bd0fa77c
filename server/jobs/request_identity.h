// Decides whether two requests are the same.
#pragma once

#include <optional>
#include <string>

#include "wan/v1/generation.pb.h"

namespace wan::server {

// A view of a request with the bare name of its model ("ti2v-5b", not "models/ti2v-5b"), so that
// requests with either form are equal. Copies the request only if the name must change; otherwise
// the request must outlive the object.
class CanonicalRequest {
 public:
  explicit CanonicalRequest(const wan::v1::GenerationRequest& request);
  const wan::v1::GenerationRequest& operator*() const { return copy_ ? *copy_ : request_; }

 private:
  const wan::v1::GenerationRequest& request_;
  std::optional<wan::v1::GenerationRequest> copy_;
};

// Returns the SHA-256 of the whole request, image included, in lower-case hex. Equal requests have
// equal digests. Any thread may call DigestOf.
std::string DigestOf(const wan::v1::GenerationRequest& request);

// Returns the key that serializes an owner's calls with one request_id (server/jobs/turns.h), so
// that a retry finds the job of the first call.
std::string TurnKeyOf(const std::string& owner, const std::string& request_id);

}  // namespace wan::server
