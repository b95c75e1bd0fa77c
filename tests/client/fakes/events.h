// Events of a job as a server sends them.
#pragma once

#include <string>

#include "wan/v1/generation.pb.h"

namespace wan::fakes {

inline wan::v1::Event EventAt(int64_t sequence, int attempt = 1) {
  wan::v1::Event event;
  event.set_sequence(sequence);
  event.set_job("jobs/a1");
  event.set_attempt(attempt);
  return event;
}

inline wan::v1::Event Queued(int64_t sequence, int position = 0) {
  wan::v1::Event event = EventAt(sequence);
  event.mutable_queued()->set_position(position);
  return event;
}

inline wan::v1::Event StageStarted(int64_t sequence, const std::string& stage) {
  wan::v1::Event event = EventAt(sequence);
  event.mutable_stage_started()->set_stage(stage);
  return event;
}

inline wan::v1::Event StageFinished(int64_t sequence, const std::string& stage, double seconds) {
  wan::v1::Event event = EventAt(sequence);
  event.mutable_stage_finished()->set_stage(stage);
  event.mutable_stage_finished()->set_seconds(seconds);
  return event;
}

// Without an estimate if `eta_seconds` is negative.
inline wan::v1::Event Step(int64_t sequence, int step, int total, double seconds,
                           double eta_seconds = -1) {
  wan::v1::Event event = EventAt(sequence);
  wan::v1::StepProgress& progress = *event.mutable_step_progress();
  progress.set_step(step);
  progress.set_total(total);
  progress.set_seconds(seconds);
  if (eta_seconds >= 0) progress.set_eta_seconds(eta_seconds);
  progress.set_expert("only");
  return event;
}

// Previews are not kept, so they have no sequence.
inline wan::v1::Event Preview(int step, const std::string& jpeg) {
  wan::v1::Event event = EventAt(0);
  event.mutable_preview()->set_step(step);
  event.mutable_preview()->set_jpeg(jpeg);
  return event;
}

inline wan::v1::Event Requeued(int64_t sequence, const std::string& reason) {
  wan::v1::Event event = EventAt(sequence, 2);
  event.mutable_requeued()->set_reason(reason);
  return event;
}

inline wan::v1::Event Completed(int64_t sequence) {
  wan::v1::Event event = EventAt(sequence);
  event.mutable_completed()->set_seconds(12.5);
  return event;
}

inline wan::v1::Event Failed(int64_t sequence, int code, const std::string& message) {
  wan::v1::Event event = EventAt(sequence);
  event.mutable_failed()->mutable_status()->set_code(code);
  event.mutable_failed()->mutable_status()->set_message(message);
  return event;
}

inline wan::v1::Event Cancelled(int64_t sequence, const std::string& reason) {
  wan::v1::Event event = EventAt(sequence);
  event.mutable_cancelled()->set_reason(reason);
  return event;
}

}  // namespace wan::fakes
