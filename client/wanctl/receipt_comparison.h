// Compares the receipts of two jobs: whether their videos are equal, and if not, why. All functions
// are pure; texts are for people.
#pragma once

#include <string>
#include <vector>

#include "wan/v1/generation.pb.h"

namespace wan::client {

// Returns a line for each artifact of `then` that is missing or different in `now`. The result is
// empty if the second job has reproduced every artifact bit for bit.
std::vector<std::string> ArtifactDifferences(const wan::v1::Receipt& then,
                                             const wan::v1::Receipt& now);

// The texts by which the result names the two receipts, and one of its options.
struct ComparedSides {
  const char* then = "then";
  const char* now = "now";
  // Whether the result also lists files whose digests are not known on both sides.
  bool unknown_digests = true;
};

// Returns a line for each difference that affects a video's bits: fields of the request, image,
// provenance, and files of the model.
std::vector<std::string> MakerDifferences(const wan::v1::Receipt& then, const wan::v1::Receipt& now,
                                          const ComparedSides& sides = {});

// Returns both lists as a text that begins with "identical" or "different".
std::string ComparisonText(const wan::v1::Receipt& then, const wan::v1::Receipt& now);

}  // namespace wan::client
