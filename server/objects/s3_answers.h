// Reads the answers of an S3-compatible service.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/objects/object_store.h"
#include "server/outbound/http_client.h"

namespace wan::server {

// Returns the text of the first element of this name, without its entities; empty if there is none.
// The answers have no two elements of one name whose order could be mistaken, so nothing else of
// XML is read.
std::string ElementText(std::string_view xml, std::string_view name);

struct S3Listing {
  std::vector<ObjectFacts> objects;
  std::string next;  // the token of the next page; empty: this is the last one
};
// Returns INTERNAL if the text is not a listing.
absl::StatusOr<S3Listing> ParseListing(std::string_view xml);

// Where a request went to, for messages.
struct S3Target {
  std::string_view endpoint;
  std::string_view bucket;
  std::string_view region;
  std::string_view key;    // empty: the request is about the bucket
  std::string_view right;  // the permission that it needs, for example "s3:PutObject"
};

// Whether a request with this answer may succeed if it is sent again.
bool IsTransient(const OutboundAnswer& answer, std::string_view body);

// Returns the error of an answer that is no success; `body` is the beginning of its body.
absl::Status ErrorOf(const OutboundAnswer& answer, std::string_view body, const S3Target& target,
                     absl::Time now);

}  // namespace wan::server
