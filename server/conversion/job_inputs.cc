#include "server/conversion/job_inputs.h"

namespace wan::server {

const wan::v1::LatentsSource& LatentsOf(const wan::v1::GenerationRequest& request,
                                        JobInputs::File JobInputs::*member) {
  return member == &JobInputs::latents ? request.latents() : request.initial_latents();
}

wan::v1::LatentsSource& MutableLatentsOf(wan::v1::GenerationRequest& request,
                                         JobInputs::File JobInputs::*member) {
  return member == &JobInputs::latents ? *request.mutable_latents()
                                       : *request.mutable_initial_latents();
}

std::string_view MissingInput(const wan::v1::Job& job, const JobInputs& inputs) {
  if (inputs.image == nullptr && !job.image_sha256().empty()) return "image";
  for (const auto& [field, member] : kLatentsInputs) {
    const bool named = !LatentsOf(job.request(), member).sha256().empty();
    if (named && inputs.*member == nullptr) return field;
  }
  return "";
}

}  // namespace wan::server
