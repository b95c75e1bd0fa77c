// An admitted request of the video API, and the answers to it.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/calls/admission.h"
#include "server/calls/gatekeeper.h"
#include "server/http/api_answer.h"
#include "server/http/http_server.h"
#include "server/http/video_routes.h"

namespace wan::server {

struct VideoExchange {
  VideoAction action;
  HttpHead head;
  std::string id;   // the part {id} of the path; empty if the path has none
  std::string job;  // the video's job, "jobs/ID"
  std::shared_ptr<Call> call;
  uint64_t most_bytes = 0;  // maximum number of bytes that the body may have
  Admission::Lease place;   // the lease of the bytes that have arrived, then that of the request
  HttpCallerGone gone;      // set when the work begins

  Party party() const { return call->TakerOf(Front::kHttp); }

  // Each of the following functions makes an answer and ends the call.

  // `bytes` is the size of the body, as text.
  HttpAnswer TooLarge(std::string_view bytes) const;
  // Returns the answer for an error. The answer's texts use the video's name in this API
  // ("video_ID"), and the field names that `name_field` returns.
  HttpAnswer Failed(const absl::Status& status, const NameField& name_field = nullptr) const;
  HttpAnswer Done(const nlohmann::json& body) const;
};

}  // namespace wan::server
