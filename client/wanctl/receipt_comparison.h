// Compares the receipts of two jobs: whether their videos are the same, and if not, why. All
// functions are pure; texts are for people.
#pragma once

#include <string>
#include <vector>

#include "wan/v1/generation.pb.h"

namespace wan::client {

// Returns a line for each artifact that `then` has and that `now` has not, or has with other bytes.
// Empty: whatever the first job has made, the second one has made again, bit for bit.
std::vector<std::string> ArtifactDifferences(const wan::v1::Receipt& then,
                                             const wan::v1::Receipt& now);

// Returns a line for each thing on which a video's bits depend and in which the two differ: fields
// of the request, the image, the provenance, and files of the model. A file whose digest is not
// known on both sides has a line that says so, if nothing else tells the two apart.
std::vector<std::string> MakerDifferences(const wan::v1::Receipt& then,
                                          const wan::v1::Receipt& now);

// Both of them as a text: its first word is "identical" or "different".
std::string ComparisonText(const wan::v1::Receipt& then, const wan::v1::Receipt& now);

}  // namespace wan::client
