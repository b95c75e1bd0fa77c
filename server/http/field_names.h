// Maps the field names of the contract and of other APIs to those of POST /v1/videos.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wan::server {

// Returns the caller's name for a field of wan.v1.GenerationRequest: "num_inference_steps" for
// "steps". Returns other texts unchanged. Use HttpFieldOf only for violations that name fields of
// GenerationRequest, not for names that the caller has sent.
std::string HttpFieldOf(std::string_view field);

// Returns which of the `known` fields the caller probably means by the unknown `name`: first by the
// names in other APIs, otherwise by similar spelling. The result is empty if no known field is
// similar.
std::string_view FieldMeantBy(std::string_view name, const std::vector<std::string_view>& known);

// Returns advice about a field that is not in `known`; the advice completes "NAME: is not a field
// of this API; ".
std::string AdviceForUnknown(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace wan::server
