// Names of the fields of POST /v1/videos, beside those of the contract and of other APIs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wan::server {

// Returns the caller's name for a field of wan.v1.GenerationRequest: "num_inference_steps" for
// "steps". Other texts stay as they are. Only for violations that name the contract's fields: a
// caller's own name must not be changed, because "steps" is not a field of this API.
std::string HttpFieldOf(std::string_view field);

// Returns which of `known` the caller most likely means by a name that is none of them: by what
// other APIs call the field, else by its spelling. Empty if nothing comes near.
std::string_view FieldMeantBy(std::string_view name, const std::vector<std::string_view>& known);

// Returns what to do instead, where a request has a field that is none of `known`: it continues
// "NAME: is not a field of this API; ".
std::string AdviceForUnknown(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace wan::server
