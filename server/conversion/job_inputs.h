// The files of a request. The server stores the files with the request until the job has ended.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "wan/v1/generation.pb.h"

namespace wan::server {

// Null members: the request has no such file.
struct JobInputs {
  using File = std::shared_ptr<const std::string>;

  File image = nullptr;            // a PNG, JPEG or WebP file
  File initial_latents = nullptr;  // safetensors files
  File latents = nullptr;

  // The artifacts of earlier jobs that have the files of kLatentsInputs, by the fields' names. The
  // database does not store such a file, because InputLinks (server/store) keeps it.
  std::map<std::string_view, std::string> artifacts = {};
};

// The members of JobInputs that have latents, with the names of the request's fields.
inline constexpr std::array<std::pair<std::string_view, JobInputs::File JobInputs::*>, 2>
    kLatentsInputs = {
        {{"initial_latents", &JobInputs::initial_latents}, {"latents", &JobInputs::latents}}};

// Return the request's field that belongs to a member of kLatentsInputs.
const wan::v1::LatentsSource& LatentsOf(const wan::v1::GenerationRequest& request,
                                        JobInputs::File JobInputs::*member);
wan::v1::LatentsSource& MutableLatentsOf(wan::v1::GenerationRequest& request,
                                         JobInputs::File JobInputs::*member);

// Returns the field of the first file that the job's stored request mentions but `inputs` lacks;
// empty if all files are there.
std::string_view MissingInput(const wan::v1::Job& job, const JobInputs& inputs);

}  // namespace wan::server
