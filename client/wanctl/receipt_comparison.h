// Compares the receipts of two jobs: whether their videos are the same, and if not, why. All
// functions are pure; texts are for people.
#pragma once

#include <string>
#include <vector>

#include "wan/v1/generation.pb.h"

namespace wan::client {

// Returns a line for each artifact of `then` that `now` lacks or has with other bytes. Empty: the
// second job has made every artifact of the first again, bit for bit.
std::vector<std::string> ArtifactDifferences(const wan::v1::Receipt& then,
                                             const wan::v1::Receipt& now);

// Returns a line for each difference on which a video's bits depend: fields of the request, the
// image, the provenance, and files of the model. If there is none, files without a known digest on
// both sides get a line that says so.
std::vector<std::string> MakerDifferences(const wan::v1::Receipt& then,
                                          const wan::v1::Receipt& now);

// Both lists as a text, whose first word is "identical" or "different".
std::string ComparisonText(const wan::v1::Receipt& then, const wan::v1::Receipt& now);

}  // namespace wan::client
