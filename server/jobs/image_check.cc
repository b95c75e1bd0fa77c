#include "server/jobs/image_check.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/conversion/color.h"
#include "server/conversion/convert.h"
#include "server/jobs/engine_call.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {
namespace {

// Steps run one after the other, so the object needs no lock.
class ImageCheck : public std::enable_shared_from_this<ImageCheck> {
 public:
  ImageCheck(const Engine& engine, std::vector<NewJob> jobs, PostStep post,
             std::function<void(CheckedJobs)> done)
      : engine_(engine), post_(std::move(post)), done_(std::move(done)) {
    result_.jobs = std::move(jobs);
  }

  // Posts the check of the next image whose result is not known yet.
  void Advance() {
    for (; next_ < result_.jobs.size(); ++next_) {
      const NewJob& job = result_.jobs[next_];
      if (job.inputs.image == nullptr) continue;
      const auto known = known_.find(job.stored.job.image_sha256());
      if (known == known_.end()) {
        post_([self = shared_from_this()](const absl::Status& turn) { self->Step(turn); });
        return;
      }
      Tell(next_, known->second);
    }
    done_(std::move(result_));
  }

 private:
  void Step(const absl::Status& turn) {
    if (!turn.ok()) {
      result_.dropped = turn;
      done_(std::move(result_));
      return;
    }
    const NewJob& job = result_.jobs[next_];
    const Color background = ParseColor(job.stored.job.request().background()).value_or(Color());
    known_.emplace(job.stored.job.image_sha256(),
                   CallEngine([&] { return engine_.CheckImage(*job.inputs.image, background); }));
    Advance();
  }

  // Writes the result of an image's check to one of the jobs that use the image.
  void Tell(size_t job, const absl::StatusOr<InputImage>& checked) {
    if (!checked.ok()) {
      result_.refused.emplace(job, checked.status());
      return;
    }
    wan::v1::Job& stored = result_.jobs[job].stored.job;
    wan::v1::InputImage& image = *stored.mutable_input_image();
    image = ToProto(*checked);
    // `checked` may come from a job that has the same image but another background.
    if (checked->blended_over.has_value()) image.set_blended_over(stored.request().background());
  }

  const Engine& engine_;
  const PostStep post_;
  const std::function<void(CheckedJobs)> done_;
  CheckedJobs result_;
  size_t next_ = 0;
  // Results so far; the key is the image's SHA-256.
  std::map<std::string, absl::StatusOr<InputImage>> known_;
};

}  // namespace

void CheckImages(const Engine& engine, std::vector<NewJob> jobs, const PostStep& post,
                 std::function<void(CheckedJobs)> done) {
  std::make_shared<ImageCheck>(engine, std::move(jobs), post, std::move(done))->Advance();
}

}  // namespace wan::server
