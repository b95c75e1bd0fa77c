// Decodes the images of new jobs before these are accepted, because a plan only measures them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "engine/api/engine.h"
#include "server/jobs/job_order.h"
#include "server/jobs/turns.h"

namespace wan::server {

struct CheckedJobs {
  std::vector<NewJob> jobs;  // with Job.input_image, as far as they have been checked
  // OK if all images were decoded; otherwise why the check ended early.
  absl::Status dropped;
  // The refusal of each job whose image was refused, by its place among the jobs: INVALID_ARGUMENT
  // with a violation of `image`, or another error of the engine.
  std::map<size_t, absl::Status> refused;
};

// Checks the images of one call's planned jobs (Engine::CheckImage) and records the facts of each
// image in its job. An image takes up to about a second of a thread and some hundred MiB, so that
// each is a step of its own; jobs with the same image are checked in one. `done` is called after
// the last step, on its thread, or at once if there is no image. The engine must outlive the check.
void CheckImages(const Engine& engine, std::vector<NewJob> jobs, const PostStep& post,
                 std::function<void(CheckedJobs)> done);

}  // namespace wan::server
