// One admitted request of the video API, and its answers.
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
  std::string id;   // {id} in the path; empty if there is none
  std::string job;  // "jobs/ID" of the video
  std::shared_ptr<Call> call;
  uint64_t most_bytes = 0;  // limit for the body
  Admission::Lease place;   // for the arrived bytes, then for the request
  HttpCallerGone gone;      // set when the work begins

  Party party() const { return call->TakerOf(Front::kHttp); }

  // Each of the following makes an answer and ends the call.

  // `bytes` is the size of the body, as text.
  HttpAnswer TooLarge(std::string_view bytes) const;
  // Returns the answer for an error, with the caller's name of the video and names of fields from
  // `name_field`.
  HttpAnswer Failed(const absl::Status& status, const NameField& name_field = nullptr) const;
  HttpAnswer Done(const nlohmann::json& body) const;
};

}  // namespace wan::server
