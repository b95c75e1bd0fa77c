// When the image of a request is decoded: once, when its job is created.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "engine/api/errors.h"
#include "server/jobs/image_check.h"
#include "tests/server/jobs/lifecycle_fixture.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr char kWhy[] = "is a broken PNG file: it is cut off";

class ImageRequestsTest : public LifecycleTest {
 protected:
  static wan::v1::GenerationRequest RequestWith(const std::string& image) {
    wan::v1::GenerationRequest request = Request();
    request.set_image(image);
    return request;
  }

  // A model that jobs use is not unloaded.
  absl::Status Unload() {
    absl::Status status;
    absl::Notification done;
    service_->model_operations().Unload("m", [&](const absl::StatusOr<wan::v1::Model>& answer) {
      status = answer.status();
      done.Notify();
    });
    done.WaitForNotification();
    return status;
  }
};

TEST_F(ImageRequestsTest, ADamagedImageIsRefusedWhenItsJobIsCreated) {
  Open();
  for (const bool tied : {false, true}) {
    const absl::Status refused = calls().Create(RequestWith("PNG damaged"), tied).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(FieldViolationsOf(refused), ElementsAre(FieldViolation{"image", kWhy}));
  }
  EXPECT_EQ(calls().List({})->jobs_size(), 0);
  EXPECT_TRUE(Unload().ok());
}

TEST_F(ImageRequestsTest, AQuoteLooksAtNoPixels) {
  Open();
  wan::v1::QuoteRequest quote;
  *quote.mutable_request() = RequestWith("PNG damaged");
  EXPECT_TRUE(service_->Quote(quote).ok());
  EXPECT_THAT(engine_->CheckedImages(), IsEmpty());
}

TEST_F(ImageRequestsTest, EachImageOfABatchIsCheckedOnce) {
  Open();
  wan::v1::SubmitBatchRequest batch;
  *batch.add_requests() = Request();
  for (const char* image : {"PNG a", "PNG b", "PNG a"}) {
    *batch.add_requests() = RequestWith(image);
  }
  batch.mutable_requests(3)->set_background("#0a80ff");
  const auto accepted = calls().SubmitBatch(batch);
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  EXPECT_THAT(engine_->CheckedImages(), ElementsAre("PNG a", "PNG b"));
  EXPECT_FALSE(accepted->jobs(0).has_input_image());
  EXPECT_EQ(accepted->jobs(1).input_image().blended_over(), "#ffffff");
  EXPECT_EQ(accepted->jobs(3).input_image().blended_over(), "#0a80ff");
}

TEST_F(ImageRequestsTest, EveryDamagedImageOfABatchIsNamedAndNoneOfItsJobsAccepted) {
  Open();
  wan::v1::SubmitBatchRequest batch;
  *batch.add_requests() = Request();
  for (const char* image : {"PNG damaged a", "PNG good", "PNG damaged a", "PNG damaged b"}) {
    *batch.add_requests() = RequestWith(image);
  }
  EXPECT_THAT(FieldViolationsOf(calls().SubmitBatch(batch).status()),
              ElementsAre(FieldViolation{"requests[1].image", kWhy},
                          FieldViolation{"requests[3].image", kWhy},
                          FieldViolation{"requests[4].image", kWhy}));
  EXPECT_THAT(engine_->CheckedImages(), ElementsAre("PNG damaged a", "PNG good", "PNG damaged b"));
  EXPECT_EQ(calls().List({})->jobs_size(), 0);
  EXPECT_TRUE(Unload().ok());
}

// What is wrong with a header or a field is told before any picture is decoded.
TEST_F(ImageRequestsTest, ARequestThatIsWrongOtherwiseHasNoImageDecoded) {
  Open();
  wan::v1::GenerationRequest wrong = RequestWith("PNG damaged");
  wrong.set_steps(-1);
  EXPECT_FALSE(calls().Create(wrong, false).ok());
  wan::v1::SubmitBatchRequest batch;
  *batch.add_requests() = RequestWith("PNG damaged");
  *batch.add_requests() = wrong;
  EXPECT_FALSE(calls().SubmitBatch(batch).ok());
  EXPECT_THAT(engine_->CheckedImages(), IsEmpty());
}

TEST_F(ImageRequestsTest, ARetryIsNotCheckedAgain) {
  Open();
  wan::v1::GenerationRequest request = RequestWith("PNG bytes");
  request.set_request_id("once");
  const std::string name = Create(request);
  EXPECT_EQ(calls().Create(request, false)->job.name(), name);
  EXPECT_THAT(engine_->CheckedImages(), ElementsAre("PNG bytes"));
}

// After a restart plans are made again, of the job that waits and of the one that runs.
TEST_F(ImageRequestsTest, AJobAfterARestartIsPlannedWithoutDecodingItsImage) {
  Open();
  const std::string held = CreateHeld("T5_Encoding", RequestWith("PNG first"));
  const std::string queued = Create(RequestWith("PNG second"));
  KillAndRestart();
  RunToEnd(held);
  RunToEnd(queued);
  EXPECT_EQ(Get(queued).state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(*engine_->Generated().back().image, "PNG second");
  EXPECT_THAT(engine_->CheckedImages(), IsEmpty());
  EXPECT_EQ(Get(queued).input_image().format(), "PNG");
}

// Each image waits for its turn, and none is decoded for a caller who is gone.
TEST(CheckImages, DecodesAnImageATurnUntilTheCallerIsGone) {
  const fakes::FakeEngine engine;
  std::vector<NewJob> jobs;
  for (const char* image : {"PNG a", "PNG damaged", "PNG c"}) {
    jobs.emplace_back().inputs.image = std::make_shared<const std::string>(image);
    jobs.back().stored.job.set_image_sha256(image);
  }
  std::function<void(const absl::Status&)> step;
  std::optional<CheckedJobs> result;
  CheckImages(
      engine, std::move(jobs), [&](auto next) { step = std::move(next); },
      [&](CheckedJobs checked) { result = std::move(checked); });
  EXPECT_THAT(engine.CheckedImages(), IsEmpty());
  for (const char* decoded : {"PNG a", "PNG damaged"}) {
    std::exchange(step, nullptr)(absl::OkStatus());
    EXPECT_EQ(engine.CheckedImages().back(), decoded);
    EXPECT_FALSE(result.has_value());
  }
  std::exchange(step, nullptr)(absl::CancelledError("gone"));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(step, nullptr);
  EXPECT_EQ(result->dropped, absl::CancelledError("gone"));
  EXPECT_EQ(engine.CheckedImages().size(), 2);
  ASSERT_EQ(result->jobs.size(), 3);
  EXPECT_TRUE(result->jobs[0].stored.job.has_input_image());
  EXPECT_THAT(result->refused, ElementsAre(Pair(1, InvalidFields({{"image", kWhy}}))));
}

}  // namespace
}  // namespace wan::server
