// wanctl compare against a server whose answers are written down, and with files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/client/compare/test_video.h"
#include "tests/client/wanctl/wanctl_fixture.h"

namespace wan::client {
namespace {

using fakes::ReadFile;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CompareTest : public WanctlTest {
 protected:
  CompareTest() {
    server_.scripts.get_job = [this](const wan::v1::GetJobRequest& request, wan::v1::Job* job) {
      *job = jobs_.at(request.name());
      return grpc::Status::OK;
    };
    server_.scripts.get_receipt = [this](const wan::v1::GetReceiptRequest& request,
                                         wan::v1::Receipt* receipt) {
      const wan::v1::Job& job = jobs_.at(request.job());
      receipt->set_name(job.name() + "/receipt");
      *receipt->mutable_request() = job.request();
      *receipt->mutable_artifacts() = job.artifacts();
      return grpc::Status::OK;
    };
  }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  // The bytes of a video.
  std::string Bytes(const std::string& ending, const fakes::TestVideo& video) {
    fakes::WriteTestVideo(folder_ / ("served" + ending), video);
    return ReadFile(folder_ / ("served" + ending));
  }

  // A job that has completed, with its request's size; the caller adds artifacts.
  wan::v1::Job& Add(const std::string& name, const fakes::TestVideo& video) {
    wan::v1::Job& job = jobs_[name];
    job.set_name(name);
    job.set_state(wan::v1::JOB_STATE_COMPLETED);
    job.mutable_request()->set_width(video.width);
    job.mutable_request()->set_height(video.height);
    job.mutable_request()->set_num_frames(video.frames);
    job.mutable_request()->set_fps(video.fps);
    return job;
  }
  void AddLossless(wan::v1::Job& job, const std::string& file, const fakes::TestVideo& video) {
    *job.add_artifacts() = Serve(wan::v1::OUTPUT_KIND_LOSSLESS_MKV, file, Bytes(".mkv", video));
  }
  void AddMp4(wan::v1::Job& job, const std::string& file, const fakes::TestVideo& video) {
    *job.add_artifacts() = Serve(wan::v1::OUTPUT_KIND_MP4, file, Bytes(".mp4", video));
  }

  std::map<std::string, wan::v1::Job> jobs_;
};

TEST_F(CompareTest, TwoJobsAreComparedByTheirLosslessVideos) {
  const fakes::TestVideo video, grainy{.grain = 10};
  wan::v1::Job& one = Add("jobs/one", video);
  AddMp4(one, "a.mp4", video);
  AddLossless(one, "a.mkv", video);
  one.mutable_request()->set_steps(20);
  wan::v1::Job& two = Add("jobs/two", video);
  AddLossless(two, "b.mkv", grainy);
  AddMp4(two, "b.mp4", grainy);
  two.mutable_request()->set_steps(10);
  EXPECT_EQ(Run({"compare", "one", "jobs/two"}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("A:    jobs/one, its lossless .mkv\n"),
                          HasSubstr("B:    jobs/two, its lossless .mkv\n"),
                          HasSubstr("Both: 64x48, 5 frames, 16 frames a second\n"),
                          HasSubstr("PSNR of RGB (dB)  "),
                          HasSubstr("differ in one thing:\n\n- request: steps: 20 in A, 10 in B\n"),
                          Not(HasSubstr("Frames\n")), Not(HasSubstr("compressed"))));
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(CompareTest, BothSidesAreOfOneKindWhereThatIsPossible) {
  const fakes::TestVideo video;
  wan::v1::Job& one = Add("jobs/one", video);
  AddMp4(one, "a.mp4", video);
  AddLossless(one, "a.mkv", video);
  AddMp4(Add("jobs/two", video), "b.mp4", video);
  EXPECT_EQ(Run({"compare", "one", "two"}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("jobs/one, its .mp4\n"), HasSubstr("jobs/two, its .mp4\n"),
                          HasSubstr("5 of 5 frames have equal pixels")));
  AddLossless(Add("jobs/three", video), "c.mkv", video);
  EXPECT_EQ(Run({"compare", "two", "three"}), 0) << err_;
  EXPECT_THAT(out_,
              AllOf(HasSubstr("jobs/two, its .mp4\n"), HasSubstr("jobs/three, its lossless .mkv\n"),
                    HasSubstr("An .mp4 is compressed")));
}

TEST_F(CompareTest, FilesNeedNoServer) {
  fakes::WriteTestVideo(folder_ / "a.mkv", {});
  fakes::WriteTestVideo(folder_ / "b.mkv", {.grain = 5});
  const std::vector<std::string> command = {"--server", "127.0.0.1:1", "compare", Path("a.mkv"),
                                            Path("b.mkv")};
  EXPECT_EQ(RunAt(command), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("A:    " + Path("a.mkv") + "\n"),
                          HasSubstr("Which settings differ is not known")));
  const std::string first = out_;
  EXPECT_EQ(RunAt(command), 0);
  EXPECT_EQ(out_, first) << "the same digits";
}

TEST_F(CompareTest, AJobIsComparedWithAFile) {
  const fakes::TestVideo video;
  AddLossless(Add("jobs/one", video), "a.mkv", video);
  fakes::WriteTestVideo(folder_ / "b.mkv", {.grain = 5});
  EXPECT_EQ(Run({"compare", "one", Path("b.mkv"), "--json"}), 0) << err_;
  EXPECT_THAT(out_, EndsWith("}\n"));
  const nlohmann::json json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["a"]["name"], "jobs/one");
  EXPECT_EQ(json["b"]["name"], Path("b.mkv"));
  EXPECT_EQ(json["perFrame"].size(), 5u);
  EXPECT_FALSE(json.contains("differences"));
}

TEST_F(CompareTest, FilesAndFoldersGetPlotsAndFigures) {
  fakes::WriteTestVideo(folder_ / "a.mkv", {});
  fakes::WriteTestVideo(folder_ / "b.mkv", {.grain = 5});
  EXPECT_EQ(RunAt({"compare", Path("a.mkv"), Path("b.mkv"), "--output", Path("out/"),
                   Path("ab.html"), Path("ab.csv"), "--side-by-side", Path("ab.mp4")}),
            0)
      << err_;
  EXPECT_THAT(out_, HasSubstr("ab.mp4 shows A and B"));
  for (const char* const name :
       {"out/comparison.md", "out/comparison.html", "out/comparison.json", "out/frames.csv",
        "out/plots/01_psnr_db.svg", "out/plots/03_ms_ssim.svg", "ab.mp4"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / name)) << name;
  }
  EXPECT_THAT(ReadFile(folder_ / "ab.html"), AllOf(HasSubstr("<svg"), HasSubstr("Frames")));
  EXPECT_THAT(ReadFile(folder_ / "ab.csv"), HasSubstr("frame,psnr_db,ssim,ms_ssim\n0,"));
  EXPECT_EQ(ReadFile(folder_ / "ab.csv"), ReadFile(folder_ / "out/frames.csv"));
}

TEST_F(CompareTest, AJobWithoutAVideoIsRefused) {
  wan::v1::Job& one = Add("jobs/one", {});
  Add("jobs/two", {});
  one.set_state(wan::v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Run({"compare", "one", "two"}), 3);
  EXPECT_THAT(err_, HasSubstr("FAILED_PRECONDITION: state of jobs/one: is running; must be "
                              "completed, for example after 'wanctl watch jobs/one'\n"));
  one.set_state(wan::v1::JOB_STATE_FAILED);
  EXPECT_EQ(Run({"compare", "one", "two"}), 3);
  EXPECT_THAT(err_, HasSubstr("'wanctl get jobs/one' shows why it is not\n"));
  one.set_state(wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(Run({"compare", "one", "two"}), 3);
  EXPECT_THAT(err_, HasSubstr("files of jobs/one: there are none; there must be an .mkv"));
  *one.add_artifacts() = Serve(wan::v1::OUTPUT_KIND_LATENTS, "a.safetensors", "latents");
  EXPECT_EQ(Run({"compare", "one", "two", "--json"}), 3);
  EXPECT_THAT(err_, AllOf(HasSubstr("files of jobs/one: there is only .safetensors"),
                          HasSubstr("\n{\"code\":9,")));
  EXPECT_THAT(out_, IsEmpty());
}

TEST_F(CompareTest, JobsOfOtherShapesAreRefusedBeforeADownload) {
  const fakes::TestVideo video;
  AddLossless(Add("jobs/one", video), "a.mkv", video);
  AddLossless(Add("jobs/two", {.width = 32, .frames = 9}), "b.mkv", video);
  server_.scripts.download = [](const auto&) {
    ADD_FAILURE() << "the requests say it already";
    return fakes::Stream<wan::v1::DownloadArtifactResponse>{};
  };
  EXPECT_EQ(Run({"compare", "one", "two"}), 3);
  EXPECT_THAT(err_, AllOf(HasSubstr("FAILED_PRECONDITION: the videos cannot be compared"),
                          HasSubstr("size: is 64x48 in A and 32x48 in B; must be the same"),
                          HasSubstr("frames: is 5 in A and 9 in B; must be the same")));
}

TEST_F(CompareTest, FilesThatCannotBeReadOrWrittenAreUsageErrors) {
  fakes::WriteTestVideo(folder_ / "a.mkv", {});
  EXPECT_EQ(RunAt({"compare", Path("a.mkv"), Path("none.mkv")}), 2);
  EXPECT_THAT(err_, HasSubstr("none.mkv is not a file that can be read; name a video, or a job"));
  fakes::WriteFile(folder_ / "text.mkv", "text");
  EXPECT_EQ(RunAt({"compare", Path("a.mkv"), Path("text.mkv")}), 2);
  EXPECT_THAT(err_, HasSubstr("text.mkv"));
  const std::vector<std::string> equal = {"compare", Path("a.mkv"), Path("a.mkv")};
  const auto with = [&](const std::string& flag, const std::string& value) {
    std::vector<std::string> args = equal;
    args.insert(args.end(), {flag, value});
    return RunAt(args);
  };
  EXPECT_EQ(with("--side-by-side", Path("none/ab.mp4")), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("--side-by-side: "), HasSubstr("not an existing folder")));
  EXPECT_EQ(with("--side-by-side", "ab.avi"), 2);
  EXPECT_THAT(err_, HasSubstr("--side-by-side expects a file that ends in .mp4, not 'ab.avi'"));
  EXPECT_EQ(with("--output", Path("none/ab.csv")), 2);
  EXPECT_THAT(err_, HasSubstr("--output: "));
  EXPECT_EQ(with("--output", "ab.pdf"), 2);
  EXPECT_THAT(err_, HasSubstr("--output expects a file that ends in .html, .md, .txt, .json or "
                              ".csv, or a folder such as DIR/, not 'ab.pdf'"));
}

}  // namespace
}  // namespace wan::client
