// wanctl replay against a server whose answers are written down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/client/wanctl/wanctl_fixture.h"

namespace wan::client {
namespace {

using fakes::Queued;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kImageBytes[] = "png bytes";

class ReplayTest : public WanctlTest {
 protected:
  ReplayTest() {
    then_.set_name("jobs/old/receipt");
    then_.mutable_request()->set_model("5b");
    then_.mutable_request()->set_seed(7);
    then_.mutable_request()->set_request_id("first");
    then_.mutable_request()->mutable_deadline()->set_seconds(1);
    then_.mutable_provenance()->set_libraries("LibTorch 1");
    wan::v1::Artifact& artifact = *then_.add_artifacts();
    artifact.set_kind(wan::v1::OUTPUT_KIND_MP4);
    artifact.set_sha256("12");
    now_receipt_ = then_;
    now_receipt_.set_name("jobs/a1/receipt");
  }

  int Replay(std::vector<std::string> more = {}) {
    server_.scripts.get_receipt = [this](const wan::v1::GetReceiptRequest& request,
                                         wan::v1::Receipt* answer) {
      *answer = request.job() == "jobs/old" ? then_ : now_receipt_;
      return grpc::Status::OK;
    };
    Script({Queued(1), CompletedWith(2, {})});
    more.insert(more.begin(), {"replay", "old"});
    return Run(more);
  }

  std::string Image(const std::string& bytes) {
    fakes::WriteFile(folder_ / "image.png", bytes);
    return (folder_ / "image.png").string();
  }
  void MadeWithAnImage() {
    Sha256 hash;
    hash.Update(kImageBytes);
    then_.set_image_sha256(hash.Finish());
    now_receipt_.set_image_sha256(then_.image_sha256());
  }

  wan::v1::Receipt then_, now_receipt_;
};

TEST_F(ReplayTest, TheSameRequestGivesTheSameBits) {
  EXPECT_EQ(Replay(), 0) << err_;
  EXPECT_EQ(out_, "identical: jobs/a1 has the same files as jobs/old, bit for bit\n");
  ASSERT_EQ(generate_requests_.All().size(), 1u);
  const wan::v1::GenerationRequest sent = generate_requests_.All()[0].request();
  EXPECT_EQ(sent.seed(), 7);
  EXPECT_THAT(sent.request_id(), AllOf(StartsWith("replay-"), testing::SizeIs(39)));
  EXPECT_FALSE(sent.has_deadline()) << "the old one has passed";
}

TEST_F(ReplayTest, OtherBitsAreExplained) {
  now_receipt_.mutable_artifacts(0)->set_sha256("34");
  now_receipt_.mutable_provenance()->set_libraries("LibTorch 2");
  EXPECT_EQ(Replay(), 7);
  EXPECT_EQ(out_,
            "different: jobs/a1 has other files than jobs/old\n"
            "  mp4: SHA-256 12 then, 34 now\n"
            "What differs in how they were made:\n"
            "  server: libraries: \"LibTorch 1\" then, \"LibTorch 2\" now\n");
  EXPECT_EQ(Replay({"--json"}), 7);
  EXPECT_THAT(err_, HasSubstr("different: jobs/a1"));
  EXPECT_EQ(FromLines<wan::v1::Receipt>(out_.substr(out_.rfind("\n", out_.size() - 2) + 1))
                .front()
                .provenance()
                .libraries(),
            "LibTorch 2");
}

TEST_F(ReplayTest, TheImageIsSentAgain) {
  MadeWithAnImage();
  EXPECT_EQ(Replay({"--image", Image(kImageBytes)}), 0) << err_;
  EXPECT_EQ(generate_requests_.All()[0].request().image(), kImageBytes);
}

TEST_F(ReplayTest, AMissingOrWrongImageIsRefusedBeforeAnythingRuns) {
  EXPECT_EQ(Replay({"--image", Image(kImageBytes)}), 2);
  EXPECT_THAT(err_, HasSubstr("--image: the job was made without an image"));
  MadeWithAnImage();
  EXPECT_EQ(Replay(), 2);
  EXPECT_THAT(err_,
              AllOf(HasSubstr("--image must name the file"), HasSubstr(then_.image_sha256())));
  EXPECT_EQ(Replay({"--image", Image("other bytes")}), 2);
  EXPECT_THAT(err_, HasSubstr("but the job's image has " + then_.image_sha256()));
  EXPECT_EQ(Replay({"--image", (folder_ / "none").string()}), 2);
  EXPECT_THAT(generate_requests_.All(), IsEmpty());
}

TEST_F(ReplayTest, LatentsOfAJobAreTakenFromItAgainAndThoseOfAFileAreSentAgain) {
  wan::v1::GenerationRequest& request = *then_.mutable_request();
  request.mutable_latents()->set_job("jobs/maker");
  request.mutable_latents()->set_sha256("56");
  EXPECT_EQ(Replay(), 0) << err_;
  EXPECT_EQ(generate_requests_.All().back().request().latents().job(), "jobs/maker");
  EXPECT_EQ(generate_requests_.All().back().request().latents().sha256(), "56")
      << "the server compares it";
  EXPECT_EQ(Replay({"--initial-latents", Image("noise")}), 2);
  EXPECT_THAT(err_, HasSubstr("--initial-latents: the job was made without such latents"));

  request.mutable_initial_latents()->set_sha256("78");
  EXPECT_EQ(Replay(), 2);
  EXPECT_THAT(err_, HasSubstr("--initial-latents must name the file with the SHA-256 78"));
  EXPECT_EQ(Replay({"--initial-latents", Image("noise")}), 0) << err_;
  const wan::v1::LatentsSource sent = generate_requests_.All().back().request().initial_latents();
  EXPECT_EQ(sent.data(), "noise");
  EXPECT_EQ(sent.sha256(), "78");
  EXPECT_EQ(Replay({"--initial-latents", (folder_ / "none").string()}), 2);
}

TEST_F(ReplayTest, AJobWithoutFilesCannotBeCompared) {
  then_.clear_artifacts();
  EXPECT_EQ(Replay(), 3);
  EXPECT_THAT(err_, HasSubstr("jobs/old has made no file"));
  EXPECT_THAT(generate_requests_.All(), IsEmpty());
}

TEST_F(ReplayTest, AReceiptIsShown) {
  server_.scripts.get_receipt = [this](const auto&, wan::v1::Receipt* answer) {
    *answer = then_;
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"receipt", "old"}), 0);
  EXPECT_THAT(out_, StartsWith("Receipt:     jobs/old/receipt\n"));
}

}  // namespace
}  // namespace wan::client
