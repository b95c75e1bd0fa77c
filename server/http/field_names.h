// Maps the field names of the contract and of other APIs to those of POST /v1/videos.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wan::server {

// Returns the caller's name for a field of wan.v1.GenerationRequest: "num_inference_steps" for
// "steps". Other texts are returned unchanged. Use it only for violations that name the contract's
// fields, not for names that the caller sent.
std::string HttpFieldOf(std::string_view field);

// Returns which of `known` the caller probably means by an unknown name: first by the names of
// other APIs, else by similar spelling. Empty if none is similar.
std::string_view FieldMeantBy(std::string_view name, const std::vector<std::string_view>& known);

// Returns the advice for a field that is not in `known`; it completes "NAME: is not a field of this
// API; ".
std::string AdviceForUnknown(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace wan::server
