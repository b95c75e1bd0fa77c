// Receipts: what a job's video was made from, also after the model is another.
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "engine/api/compute_revision.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/digest.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class ReceiptTest : public ServiceTest {
 protected:
  // The folder of a model, with one file for each text.
  std::string Model(const std::string& name, const std::vector<std::string>& texts) {
    const fs::path folder = folder_.path() / name;
    fs::create_directories(folder / "vae");
    for (size_t i = 0; i < texts.size(); ++i) {
      std::ofstream(folder / "vae" / std::to_string(i)) << texts[i];
    }
    return folder.string();
  }

  void Unload(const std::string& name) {
    absl::Notification done;
    service_->model_operations().Unload(name, [&](const auto& model) {
      EXPECT_TRUE(model.ok()) << model.status();
      done.Notify();
    });
    done.WaitForNotification();
  }

  wan::v1::Receipt Receipt(const std::string& job) {
    const auto receipt = service_->Receipt(job);
    EXPECT_TRUE(receipt.ok()) << receipt.status();
    return receipt.ok() ? *receipt : wan::v1::Receipt();
  }

  // The receipt once it has the digests, which another thread computes.
  wan::v1::Receipt WithDigests(const std::string& job) {
    for (;;) {
      wan::v1::Receipt receipt = Receipt(job);
      bool complete = true;
      for (const auto& file : receipt.files()) complete = complete && !file.sha256().empty();
      if (complete) return receipt;
      std::this_thread::yield();
    }
  }

  static std::vector<std::string> Files(const wan::v1::Receipt& receipt) {
    std::vector<std::string> files;
    for (const auto& file : receipt.files()) {
      files.push_back(absl::StrCat(file.path(), " ", file.size_bytes(), " ", file.sha256()));
    }
    return files;
  }
};

TEST_F(ReceiptTest, HasWhatTheVideoWasMadeFrom) {
  options_.server_version = "1.2.3";
  Open(/*load=*/false);
  LoadModel("m", Model("one", {"a", "bb"}));
  wan::v1::GenerationRequest request = Request();
  request.set_image("PNG bytes");
  const std::string name = Create(request);
  RunToEnd(name);
  const wan::v1::Receipt receipt = WithDigests(name);
  EXPECT_EQ(receipt.name(), name + "/receipt");
  EXPECT_EQ(receipt.request().seed(), 1000);
  EXPECT_EQ(receipt.request().quality(), wan::v1::QUALITY_EXACT);
  EXPECT_EQ(receipt.request().image(), "");
  EXPECT_EQ(receipt.image_sha256(), Sha256Hex("PNG bytes"));
  EXPECT_EQ(receipt.provenance().server_version(), "1.2.3");
  EXPECT_THAT(Files(receipt),
              ElementsAre("vae/0 1 " + Sha256Hex("a"), "vae/1 2 " + Sha256Hex("bb")));
  ASSERT_EQ(receipt.artifacts_size(), 1);
  EXPECT_EQ(receipt.artifacts(0).sha256(), Sha256Hex("mp4 seed 1000"));
}

TEST_F(ReceiptTest, RepeatsTheQuality) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.set_quality(wan::v1::QUALITY_HIGH);
  const std::string name = Create(request);
  RunToEnd(name);
  EXPECT_EQ(Receipt(name).request().quality(), wan::v1::QUALITY_HIGH);
  EXPECT_EQ(engine_->Generated().back().quality, Quality::kHigh);
  const auto report = service_->Report(name);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->plan().eight_bits());
}

TEST_F(ReceiptTest, SaysWhatTheAttemptUsedNotWhatIsLoadedNow) {
  Open(/*load=*/false);
  LoadModel("m", Model("one", {"a"}));
  const std::string first = Create();
  RunToEnd(first);
  WithDigests(first);
  Unload("m");
  LoadModel("m", Model("two", {"b"}));
  const std::string second = Create();
  RunToEnd(second);
  EXPECT_THAT(Files(WithDigests(second)), ElementsAre("vae/0 1 " + Sha256Hex("b")));
  EXPECT_THAT(Files(Receipt(first)), ElementsAre("vae/0 1 " + Sha256Hex("a")));
  Close();
  fs::remove_all(folder_.path() / "one");
  Open(/*load=*/false);
  EXPECT_THAT(Files(Receipt(first)), ElementsAre("vae/0 1 " + Sha256Hex("a")))
      << "after a restart, without model and files";
}

TEST_F(ReceiptTest, NeedsNeitherTheFilesNorTheListOfDigests) {
  Open(/*load=*/false);
  LoadModel("m", Model("one", {"a", "bb"}));
  const std::string name = Create();
  RunToEnd(name);
  WithDigests(name);
  Close();
  fs::remove_all(folder_.path() / "one");
  ASSERT_TRUE(fs::remove(options_.data_dir / "model_digests"));
  Open(/*load=*/false);
  EXPECT_THAT(Files(Receipt(name)),
              ElementsAre("vae/0 1 " + Sha256Hex("a"), "vae/1 2 " + Sha256Hex("bb")));
  EXPECT_EQ(Receipt(name).provenance().compute_revision(), kComputeRevision);
}

TEST_F(ReceiptTest, OfAJobThatHasNotRunHasTheRequestAlone) {
  Open(/*load=*/false);
  LoadModel("m", Model("one", {"a"}));
  engine_->Hold("T5_Encoding");
  const std::string running = Create();
  engine_->AwaitHeld("T5_Encoding");
  const std::string queued = Create();
  EXPECT_EQ(Receipt(queued).request().prompt(), "a cat");
  EXPECT_FALSE(Receipt(queued).has_provenance());
  EXPECT_THAT(Receipt(queued).files(), IsEmpty());
  service_->AwaitWrites();
  EXPECT_EQ(Receipt(running).files_size(), 1) << "it says what it runs with";
  EXPECT_THAT(Receipt(running).artifacts(), IsEmpty());
  engine_->Release("T5_Encoding");
  EXPECT_TRUE(absl::IsNotFound(service_->Receipt("jobs/none").status()));
  EXPECT_THAT(FieldsOf(service_->Receipt("none").status()), ElementsAre("job"));
}

TEST_F(ReceiptTest, GoesWithItsJob) {
  Open(/*load=*/false);
  LoadModel("m", Model("one", {"a"}));
  const std::string name = Create();
  RunToEnd(name);
  ASSERT_TRUE(calls().Delete(name).ok());
  EXPECT_TRUE(absl::IsNotFound(service_->Receipt(name).status()));
}

TEST_F(ReceiptTest, ItsRequestMakesTheSameSizeAndFileAgain) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.set_h264_crf(30);
  request.set_image("PNG tall image");
  const std::string name = Create(request);
  RunToEnd(name);
  wan::v1::GenerationRequest again = Receipt(name).request();
  EXPECT_TRUE(again.exact_size());
  EXPECT_EQ(again.h264_crf(), 30);
  EXPECT_EQ(again.width(), 32);
  EXPECT_EQ(again.height(), 64) << "the image made it so";
  again.set_image("PNG tall image");
  const std::string replay = Create(again);
  RunToEnd(replay);
  EXPECT_EQ(Receipt(replay).request().SerializeAsString(),
            Receipt(name).request().SerializeAsString());
}

}  // namespace
}  // namespace wan::server
