// Decodes the images of new jobs before the jobs are accepted, because planning reads only an
// image's size.
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
  std::vector<NewJob> jobs;  // the jobs, with Job.input_image set where the image was checked
  // OK if all images were decoded; otherwise the reason why the check ended early.
  absl::Status dropped;
  // The errors of jobs whose image was refused, by index in `jobs`: INVALID_ARGUMENT with a
  // violation of `image`, or another error of the engine.
  std::map<size_t, absl::Status> refused;
};

// Checks the images of one call's planned jobs (Engine::CheckImage) and fills in Job.input_image.
// Decoding an image takes up to about a second and some hundred MiB, so each image is a step of its
// own; jobs with the same image share a step. Calls `done` after the last step, on that step's
// thread, or at once if there is no image. The engine must outlive the check.
void CheckImages(const Engine& engine, std::vector<NewJob> jobs, const PostStep& post,
                 std::function<void(CheckedJobs)> done);

}  // namespace wan::server
