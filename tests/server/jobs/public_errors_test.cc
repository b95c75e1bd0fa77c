// What a job tells its owner of an error does not name the server's folders; the log has all of it.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class Listener final : public StateListener {
 public:
  void OnProblem(const absl::Status& problem) override {
    absl::MutexLock lock(&mutex_);
    problems_.emplace_back(problem.message());
  }
  std::vector<std::string> problems() const {
    absl::MutexLock lock(&mutex_);
    return problems_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> problems_ ABSL_GUARDED_BY(mutex_);
};

class PublicErrorsTest : public ServiceTest {
 protected:
  PublicErrorsTest() { options_.listeners = {&listener_}; }
  ~PublicErrorsTest() override { Close(); }

  Listener listener_;
};

TEST_F(PublicErrorsTest, AFailedJobNamesFilesWithoutFolders) {
  Open();
  const std::string path = (folder_.path() / "secret" / "vae.pth").string();
  engine_->FailAt("VAE_Decoding", absl::DataLossError(path + ": cannot read"));
  const std::string name = Create();
  const std::vector<wan::v1::Event> events = RunToEnd(name);
  EXPECT_EQ(Get(name).error().message(), "vae.pth: cannot read");
  EXPECT_EQ(Get(name).state(), wan::v1::JOB_STATE_FAILED);
  for (const wan::v1::Event& event : events) {
    EXPECT_THAT(event.DebugString(), Not(HasSubstr("secret")));
  }
  EXPECT_THAT(service_->Report(name)->DebugString(), Not(HasSubstr("secret")));
  EXPECT_THAT(listener_.problems(), Contains(absl::StrCat(name, ": ", path, ": cannot read")));
}

TEST_F(PublicErrorsTest, SoDoesAFileThatIsMissing) {
  Open();
  engine_->LoseOutput(OutputKind::kLosslessMkv,
                      absl::ResourceExhaustedError("writing /data/staging/video.mkv failed"));
  wan::v1::GenerationRequest request = Request();
  request.add_outputs(wan::v1::OUTPUT_KIND_MP4);
  request.add_outputs(wan::v1::OUTPUT_KIND_LOSSLESS_MKV);
  const std::string name = Create(request);
  RunToEnd(name);
  ASSERT_EQ(Get(name).omissions_size(), 1);
  EXPECT_EQ(Get(name).omissions(0).error().message(), "writing video.mkv failed");
}

TEST_F(PublicErrorsTest, AndAJobThatWaitsForItsFolder) {
  Open();
  const std::string data = options_.data_dir.string();
  engine_->FailAt("VAE_Decoding", absl::InternalError(data + "/jobs.db is gone"));
  const std::string name = Create();
  RunToEnd(name);
  EXPECT_EQ(Get(name).error().message(), "jobs.db is gone");
}

}  // namespace
}  // namespace wan::server
