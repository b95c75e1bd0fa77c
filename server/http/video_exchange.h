// One request of the video API that was let in, and its answers.
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
  std::string id;   // as the path has it; empty if it has none
  std::string job;  // "jobs/ID" of a video's id
  std::shared_ptr<Call> call;
  uint64_t most_bytes = 0;  // of the body
  Admission::Lease place;   // for what has arrived, then for the request
  HttpCallerGone gone;      // once it is worked on

  Party party() const { return call->TakerOf(Front::kHttp); }

  // Each of these makes an answer and ends the call.

  // `bytes` says how many bytes the body has.
  HttpAnswer TooLarge(std::string_view bytes) const;
  // The answer for an error. It names the video as the caller does, and fields as `name_field`
  // says.
  HttpAnswer Failed(const absl::Status& status, const NameField& name_field = nullptr) const;
  HttpAnswer Done(const nlohmann::json& body) const;
};

}  // namespace wan::server
