// The commands that follow no job, and what all commands share.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "tests/client/wanctl/wanctl_fixture.h"

namespace wan::client {
namespace {

using fakes::Completed;
using fakes::ReadFile;
using fakes::Stream;
using google::protobuf::util::MessageDifferencer;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(WanctlTest, NobodyThere) {
  // Port 1 of this machine: nobody listens there.
  EXPECT_EQ(RunAt({"--server", "127.0.0.1:1", "list"}), 6);
  EXPECT_THAT(err_, HasSubstr("wanctl: nothing listens on 127.0.0.1:1; start wanserve there"));
  EXPECT_THAT(err_, HasSubstr("name another server with --server"));
}

TEST_F(WanctlTest, UsageErrorsMakeNoCall) {
  Script({Completed(1)});
  EXPECT_EQ(Run({"generate", "--model", "5b"}), 2);
  EXPECT_EQ(Generate({"--image", (folder_ / "none.png").string()}), 2);
  EXPECT_THAT(err_, HasSubstr("none.png cannot be read: No such file"));
  EXPECT_EQ(Generate({"--image", folder_.path().string()}), 2);
  EXPECT_THAT(err_, HasSubstr(" is a folder; must be a PNG, JPEG or WebP file"));
  EXPECT_EQ(Generate({"--output", (folder_ / "none" / "a.mkv").string()}), 2);
  EXPECT_THAT(err_, HasSubstr(" is not an existing folder; create it, or name another"));
  std::filesystem::create_directory(folder_ / "b.mkv");
  EXPECT_EQ(Generate({"--output", (folder_ / "b.mkv").string()}), 2);
  EXPECT_THAT(err_, HasSubstr("is a folder"));
  fakes::WriteFile(folder_ / "file", "");
  EXPECT_EQ(Generate({"--preview-interval", "1", "--preview-dir", (folder_ / "file").string()}), 2);
  EXPECT_THAT(err_, HasSubstr("--preview-dir: cannot create"));
  EXPECT_EQ(Run({"submit", "--model", "5b", "--prompt", "a", "--image", "/none.png"}), 2);
  EXPECT_THAT(err_, HasSubstr("wanctl: --image: /none.png cannot be read: No such file"));
  EXPECT_EQ(Run({"download", "a1", "--output", "/none/a.mp4"}), 2);
  EXPECT_EQ(generate_requests_.All().size(), 0u);
}

// An image without bytes would be text to video; a pipe without a writer would be waited for.
TEST_F(WanctlTest, AnImageThatIsNoFileWithBytesIsRefused) {
  const std::string empty = (folder_ / "empty.png").string();
  fakes::WriteFile(empty, "");
  const std::string fifo = (folder_ / "fifo.png").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const std::pair<std::string, std::string> images[] = {
      {empty, "wanctl: --image: " + empty + " is empty; must be a PNG, JPEG or WebP file"},
      {fifo, "wanctl: --image: " + fifo + " is a pipe or a device; must be a PNG"},
      {"/dev/null", "wanctl: --image: /dev/null is a pipe or a device; must be a PNG"},
      {"", "--image expects some text, not ''"},
  };
  for (const auto& [image, message] : images) {
    for (const char* const command : {"generate", "submit", "quote"}) {
      EXPECT_EQ(Run({command, "--model", "5b", "--prompt", "a", "--image", image}), 2) << image;
      EXPECT_THAT(err_, HasSubstr(message));
    }
  }
  EXPECT_EQ(generate_requests_.All().size(), 0u);
}

TEST_F(WanctlTest, AnOutputThatCannotBeWrittenIsRefusedBeforeTheJob) {
  Script({Completed(1)});
  const std::string fifo = (folder_ / "fifo.mp4").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const std::string link = (folder_ / "link.mp4").string();
  std::filesystem::create_symlink("/dev/null", link);
  const std::string dangling = (folder_ / "dangling.mp4").string();
  std::filesystem::create_symlink(folder_ / "nowhere", dangling);
  const std::string file = (folder_ / "file").string();
  fakes::WriteFile(file, "");
  const struct {
    std::string path;
    std::string says;
  } table[] = {
      {fifo, "--output: " + fifo + " exists and is not a regular file\n"},
      {link, "--output: " + link + " is a symbolic link; name the file that it leads to\n"},
      {dangling, "--output: " + dangling + " is a symbolic link"},
      {file + "/a.mp4", "--output: " + file + " is not an existing folder"},
      // Its name has room for the ending, but not for that of the part.
      {(folder_ / (std::string(245, 'a') + ".mp4")).string(), "File name too long"},
      // Nobody can create a file there, not even root.
      {"/proc/a.mp4", "--output: cannot write /proc/a.mp4: "},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.path);
    EXPECT_EQ(Run({"generate", "--model", "5b", "--prompt", "a", "--output", row.path}), 2);
    EXPECT_THAT(err_, HasSubstr(row.says));
    EXPECT_EQ(Run({"download", "a1", "--output", row.path}), 2);
    EXPECT_THAT(err_, HasSubstr(row.says));
  }
  EXPECT_EQ(generate_requests_.All().size(), 0u);
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST_F(WanctlTest, ARefusedOutputLeavesNoTrace) {
  Script({}, grpc::Status(grpc::StatusCode::NOT_FOUND, "no such model"));
  EXPECT_EQ(Generate(), 3);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(WanctlTest, AFileThatExistsIsReplaced) {
  const auto mp4 = Serve(wan::v1::OUTPUT_KIND_MP4, "video.mp4", "mp4 bytes");
  fakes::WriteFile(folder_ / "a.mp4", "old");
  Script({CompletedWith(1, {mp4})});
  EXPECT_EQ(Generate(), 0);
  EXPECT_EQ(ReadFile(folder_ / "a.mp4"), "mp4 bytes");
}

TEST_F(WanctlTest, SubmitWaitsForABusyServerAMinute) {
  google::rpc::ErrorInfo info;
  info.set_reason("SERVER_BUSY");
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(1);
  server_.scripts.create_job = [&](const auto&, wan::v1::Job*) {
    return fakes::ErrorWith(grpc::StatusCode::RESOURCE_EXHAUSTED, "no room", {&info, &retry});
  };
  EXPECT_NE(Run({"submit", "--model", "5b", "--prompt", "a cat"}), 0);
  EXPECT_THAT(clock_.delays, SizeIs(60));
  EXPECT_THAT(err_, StartsWith("wanctl: the server is busy; waiting for it\n"));
}

TEST_F(WanctlTest, SubmitWaitsForAModelThatIsBeingLoaded) {
  google::rpc::ErrorInfo info;
  info.set_reason("MODEL_LOADING");
  server_.scripts.create_job = [&](const auto&, wan::v1::Job*) {
    return fakes::ErrorWith(grpc::StatusCode::UNAVAILABLE, "being loaded", {&info});
  };
  clock_.on_wait = [this] {
    server_.scripts.create_job = [](const auto&, wan::v1::Job* answer) {
      answer->set_name("jobs/a1");
      return grpc::Status::OK;
    };
  };
  EXPECT_EQ(Run({"submit", "--model", "5b", "--prompt", "a cat"}), 0);
  EXPECT_THAT(clock_.delays, ElementsAre(absl::Seconds(1)));
  EXPECT_EQ(out_, "jobs/a1\n");
  EXPECT_EQ(err_, "wanctl: the server is loading the model; waiting for it\n");
}

TEST_F(WanctlTest, SubmitSaysWhichSeedWasDrawn) {
  server_.scripts.create_job = [](const auto& request, wan::v1::Job* answer) {
    answer->set_name("jobs/a1");
    EXPECT_EQ(request.request().seed(), -1);
    answer->mutable_request()->set_seed(4711);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"submit", "--model", "5b", "--prompt", "a cat", "--seed", "-1"}), 0);
  EXPECT_EQ(out_, "jobs/a1\n");
  EXPECT_EQ(err_, "wanctl: jobs/a1 has seed 4711\n");
}

TEST_F(WanctlTest, SubmitPrintsTheNameAlone) {
  wan::v1::Job job;
  job.set_name("jobs/a1");
  job.set_state(wan::v1::JOB_STATE_QUEUED);
  fakes::Requests<wan::v1::CreateJobRequest> requests;
  server_.scripts.create_job = [&](const wan::v1::CreateJobRequest& request, wan::v1::Job* answer) {
    requests.Add(request);
    *answer = job;
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"submit", "--model", "5b", "--prompt", "a cat", "--request-id", "r1"}), 0);
  EXPECT_EQ(out_, "jobs/a1\n");
  EXPECT_EQ(err_, "");
  EXPECT_EQ(requests.All()[0].request().request_id(), "r1");
  EXPECT_THAT(requests.All()[0].request().outputs(), ElementsAre(wan::v1::OUTPUT_KIND_MP4));

  EXPECT_EQ(Run({"submit", "--model", "5b", "--prompt", "a cat", "--json"}), 0);
  const auto printed = FromLines<wan::v1::Job>(out_);
  ASSERT_EQ(printed.size(), 1u);
  EXPECT_TRUE(MessageDifferencer::Equals(printed[0], job));
}

TEST_F(WanctlTest, GetAndCancel) {
  const auto answer = [](wan::v1::JobState state) {
    return [state](const auto& request, wan::v1::Job* job) {
      job->set_name(request.name());
      job->set_state(state);
      return grpc::Status::OK;
    };
  };
  server_.scripts.get_job = answer(wan::v1::JOB_STATE_FAILED);
  server_.scripts.cancel_job = answer(wan::v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(Run({"get", "a1"}), 0);
  EXPECT_EQ(out_, "Job:         jobs/a1\nState:       FAILED\n");
  EXPECT_EQ(Run({"cancel", "jobs/a1"}), 0);
  EXPECT_EQ(out_, "Job:         jobs/a1\nState:       CANCELLED\n");
  EXPECT_EQ(Run({"--json", "get", "a1"}), 0);
  EXPECT_EQ(out_, "{\"name\":\"jobs/a1\",\"state\":\"JOB_STATE_FAILED\"}\n");
}

TEST_F(WanctlTest, QuoteTakesTheFlagsOfGenerate) {
  wan::v1::GenerationRequest asked;
  server_.scripts.quote = [&](const wan::v1::QuoteRequest& request,
                              wan::v1::QuoteResponse* response) {
    asked = request.request();
    response->mutable_request()->set_width(64);
    response->mutable_request()->set_height(32);
    response->mutable_request()->set_num_frames(5);
    response->set_steps(3);
    response->set_flops(1.5e15);
    response->set_device_memory_bytes(uint64_t{3} << 30);
    response->set_jobs_ahead(2);
    response->mutable_warm_time()->set_p50_seconds(60);
    response->mutable_warm_time()->set_p90_seconds(90);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"quote", "--model", "5b", "--prompt", "a cat", "--size", "64x32", "--output",
                 "a.mkv", "--preview-dir", "p"}),
            0);
  EXPECT_EQ(asked.model(), "5b");
  EXPECT_EQ(asked.width(), 64);
  EXPECT_EQ(asked.outputs(0), wan::v1::OUTPUT_KIND_LOSSLESS_MKV);
  EXPECT_THAT(out_, testing::HasSubstr("64x32, 5 frames, 3 steps"));
  EXPECT_THAT(out_, testing::HasSubstr("9 of 10 within"));
  EXPECT_THAT(out_, testing::Not(testing::HasSubstr("Starts in")));
}

TEST_F(WanctlTest, DeleteRemovesAJob) {
  std::string deleted;
  server_.scripts.delete_job = [&](const wan::v1::DeleteJobRequest& request, auto*) {
    deleted = request.name();
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"delete", "a1"}), 0);
  EXPECT_EQ(deleted, "jobs/a1");
  EXPECT_EQ(out_, "");
  server_.scripts.delete_job = [](const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "jobs/a1 waits or runs");
  };
  EXPECT_NE(Run({"delete", "a1"}), 0);
  EXPECT_THAT(err_, testing::HasSubstr("jobs/a1 waits or runs"));
}

TEST_F(WanctlTest, ListPassesFilterAndOrderOn) {
  wan::v1::ListJobsRequest asked;
  server_.scripts.list_jobs = [&](const wan::v1::ListJobsRequest& request, auto*) {
    asked = request;
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"list", "--filter", "labels:team", "--order-by", "end_time desc"}), 0);
  EXPECT_EQ(asked.filter(), "labels:team");
  EXPECT_EQ(asked.order_by(), "end_time desc");
}

TEST_F(WanctlTest, GetShowsOmissionsAndProvenance) {
  wan::v1::Job job;
  job.set_name("jobs/a1");
  job.set_state(wan::v1::JOB_STATE_COMPLETED);
  wan::v1::Omission& omission = *job.add_omissions();
  omission.set_output(wan::v1::OUTPUT_KIND_LOSSLESS_MKV);
  omission.mutable_error()->set_code(static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  omission.mutable_error()->set_message("the disk is full");
  job.mutable_provenance()->set_device_name("NVIDIA H200");
  job.mutable_provenance()->set_noise_device("cuda");
  ScriptJob(job);
  EXPECT_EQ(Run({"get", "a1"}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("Missing:     mkv: RESOURCE_EXHAUSTED: the disk is full\n"),
                          HasSubstr("Device:      NVIDIA H200\n"),
                          HasSubstr("Noise:       drawn by the generator of cuda\n")));
  EXPECT_EQ(Run({"--json", "get", "a1"}), 0);
  const auto printed = FromLines<wan::v1::Job>(out_);
  ASSERT_EQ(printed.size(), 1u);
  EXPECT_TRUE(MessageDifferencer::Equals(printed[0], job));

  EXPECT_EQ(Run({"download", "a1", "--output", (folder_ / "a.mkv").string()}), 3);
  EXPECT_THAT(err_, HasSubstr("jobs/a1 has no .mkv for "));
  EXPECT_THAT(err_, HasSubstr("; 'wanctl get jobs/a1' shows why\n"));
}

TEST_F(WanctlTest, ListTurnsPages) {
  fakes::Requests<wan::v1::ListJobsRequest> requests;
  server_.scripts.list_jobs = [&](const wan::v1::ListJobsRequest& request,
                                  wan::v1::ListJobsResponse* response) {
    requests.Add(request);
    // A server may give fewer than it is asked for.
    for (int i = 0; i < std::min(request.page_size(), 2); ++i) {
      response->add_jobs()->set_name("jobs/" + request.page_token() + std::to_string(i));
    }
    if (request.page_token() != "xxx") response->set_next_page_token(request.page_token() + "x");
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"list", "--limit", "5", "--state", "failed"}), 0);
  EXPECT_EQ(out_,
            "Job       State        Model  Created  Progress  Prompt\n"
            "jobs/0    UNSPECIFIED  -      -        -         -\n"
            "jobs/1    UNSPECIFIED  -      -        -         -\n"
            "jobs/x0   UNSPECIFIED  -      -        -         -\n"
            "jobs/x1   UNSPECIFIED  -      -        -         -\n"
            "jobs/xx0  UNSPECIFIED  -      -        -         -\n");
  std::vector<int> sizes;
  for (const auto& request : requests.All()) {
    sizes.push_back(request.page_size());
    EXPECT_THAT(request.states(), ElementsAre(wan::v1::JOB_STATE_FAILED));
  }
  EXPECT_THAT(sizes, ElementsAre(5, 3, 1));

  // The last page ends the list.
  EXPECT_EQ(Run({"list", "--json", "--limit", "5000"}), 0);
  const auto pages = FromLines<wan::v1::ListJobsResponse>(out_);
  ASSERT_EQ(pages.size(), 4u);
  EXPECT_EQ(pages[1].jobs(0).name(), "jobs/x0");
  EXPECT_EQ(requests.All()[3].page_size(), 1000);
}

TEST_F(WanctlTest, DownloadGoesOnWithAPart) {
  const auto mp4 = Serve(wan::v1::OUTPUT_KIND_MP4, "video.mp4", "mp4 bytes");
  wan::v1::Job job;
  job.set_name("jobs/a1");
  *job.add_artifacts() = mp4;
  ScriptJob(job);
  fakes::WriteFile(folder_ / ("a.mp4." + mp4.sha256().substr(0, 12) + ".part"), "mp4 b");
  const std::string path = (folder_ / "a.mp4").string();
  EXPECT_EQ(Run({"download", "a1", "--output", path}), 0);
  EXPECT_EQ(out_, path + "\n");
  EXPECT_EQ(ReadFile(path), "mp4 bytes");

  EXPECT_EQ(Run({"download", "a1", "--output", path, "--json"}), 0);
  const auto printed = FromLines<wan::v1::Job>(out_);
  ASSERT_EQ(printed.size(), 1u);
  EXPECT_TRUE(MessageDifferencer::Equals(printed[0], job));
}

TEST_F(WanctlTest, DownloadOfWhatIsNotThere) {
  wan::v1::Job job;
  job.set_name("jobs/a1");
  job.set_state(wan::v1::JOB_STATE_RUNNING);
  ScriptJob(job);
  EXPECT_EQ(Run({"download", "a1", "--output", (folder_ / "a.mkv").string()}), 3);
  EXPECT_THAT(err_, HasSubstr("wanctl: jobs/a1 has no .mkv"));
}

TEST_F(WanctlTest, DownloadOfDamagedBytes) {
  auto mp4 = Serve(wan::v1::OUTPUT_KIND_MP4, "video.mp4", "mp4 bytes");
  files_[mp4.name()] = "mp4 bites";
  wan::v1::Job job;
  job.set_name("jobs/a1");
  *job.add_artifacts() = mp4;
  ScriptJob(job);
  EXPECT_EQ(Run({"download", "a1", "--output", (folder_ / "a.mp4").string()}), 4);
  EXPECT_THAT(err_, HasSubstr("DATA_LOSS"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(WanctlTest, Report) {
  server_.scripts.get_report = [](const auto& request, wan::v1::JobReport* report) {
    report->set_job(request.job());
    report->add_stages()->set_stage("T5_Encoding");
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"report", "a1"}), 0);
  // Columns that nothing was measured for are left out.
  EXPECT_EQ(out_, "Stage        Time (s)\n---------------------\nT5_Encoding     0.000\n");
  EXPECT_EQ(Run({"report", "a1", "--json"}), 0);
  EXPECT_EQ(out_, "{\"job\":\"jobs/a1\",\"stages\":[{\"stage\":\"T5_Encoding\"}]}\n");
}

TEST_F(WanctlTest, Models) {
  const auto answer = [](const auto& request, wan::v1::Model* model) {
    model->set_name("models/" + request.name());
    return grpc::Status::OK;
  };
  server_.scripts.list_models = [](const auto&, wan::v1::ListModelsResponse* response) {
    response->add_models()->set_name("models/5b");
    return grpc::Status::OK;
  };
  server_.scripts.load_model = answer;
  server_.scripts.unload_model = answer;
  server_.scripts.warmup_model = answer;
  EXPECT_EQ(Run({"models"}), 0);
  EXPECT_THAT(out_, HasSubstr("\nmodels/5b  "));
  EXPECT_EQ(Run({"models", "--json"}), 0);
  EXPECT_EQ(out_, "{\"models\":[{\"name\":\"models/5b\"}]}\n");
  for (const char* verb : {"load", "unload", "warmup"}) {
    EXPECT_EQ(Run({"models", verb, "x", "--json"}), 0);
    EXPECT_EQ(out_, "{\"name\":\"models/x\"}\n");
  }
  server_.scripts.unload_model = [](const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "jobs wait");
  };
  EXPECT_EQ(Run({"models", "unload", "x"}), 3);
}

TEST_F(WanctlTest, DevicesOnceOrUntilCtrlC) {
  std::vector<int> counts;
  server_.scripts.watch_devices = [&](const wan::v1::WatchDevicesRequest& request) {
    counts.push_back(request.count());
    wan::v1::WatchDevicesResponse round;
    round.add_devices()->set_device("cpu");
    Stream<wan::v1::WatchDevicesResponse> stream{.messages = {round}};
    if (request.count() == 0) {
      stream.messages.push_back(round);
      stream.hold = true;
      stream.on_hold = [this] { stop_.request_stop(); };
    }
    return stream;
  };
  EXPECT_EQ(Run({"devices", "--json"}), 0);
  EXPECT_EQ(out_, "{\"devices\":[{\"device\":\"cpu\"}]}\n");
  EXPECT_EQ(Run({"devices", "--watch"}), 0);
  EXPECT_THAT(counts, ElementsAre(1, 0));
  EXPECT_EQ(err_, "");
}

TEST_F(WanctlTest, Info) {
  server_.scripts.get_server_info = [](const auto&, wan::v1::ServerInfo* info) {
    info->set_version("1.2.3");
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"info"}), 0);
  EXPECT_THAT(out_, HasSubstr("Version:     1.2.3\n"));
  EXPECT_EQ(Run({"info", "--json"}), 0);
  EXPECT_EQ(out_, "{\"version\":\"1.2.3\"}\n");
}

TEST_F(WanctlTest, UsageSaysWhatAPrincipalUsesAndMay) {
  wan::v1::Usage answer;
  std::string asked;
  server_.scripts.get_usage = [&](const wan::v1::GetUsageRequest& request, auto* response) {
    asked = request.principal();
    *response = answer;
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"usage"}), 0);
  EXPECT_EQ(asked, "");
  EXPECT_EQ(out_,
            "Principal:   everybody\n"
            "Queued:      0 jobs\n"
            "Running:     0 jobs\n"
            "Device:      0.0 s in 24 hours and 0.0 s to come\n"
            "Stored:      0 B\n");
  answer.set_principal("alice");
  answer.set_queued_jobs(3);
  answer.set_running_jobs(1);
  answer.set_device_seconds(90);
  answer.set_reserved_device_seconds(30.5);
  answer.set_stored_bytes(uint64_t{3} << 30);
  wan::v1::Quota& quota = *answer.mutable_quota();
  quota.set_queued_jobs(5);
  quota.set_running_jobs(2);
  quota.set_device_seconds(3600);
  quota.set_stored_bytes(uint64_t{50} << 30);
  quota.set_calls_per_second(0.5);
  EXPECT_EQ(Run({"usage", "alice"}), 0);
  EXPECT_EQ(asked, "alice");
  EXPECT_EQ(out_,
            "Principal:   alice\n"
            "Queued:      3 jobs of at most 5\n"
            "Running:     1 jobs of at most 2\n"
            "Device:      90.0 s in 24 hours and 30.5 s to come of at most 3600.0 s\n"
            "Stored:      3.0 GiB of at most 50.0 GiB\n"
            "Calls:       at most 0.5 a second\n");
  EXPECT_EQ(Run({"usage", "alice", "--json"}), 0);
  EXPECT_THAT(out_, HasSubstr("\"principal\":\"alice\""));
  EXPECT_EQ(Run({"usage", ""}), 2);
}

TEST_F(WanctlTest, DrainSaysWhatBecameOfTheRunningJob) {
  wan::v1::DrainResponse answer;
  server_.scripts.drain = [&](const wan::v1::DrainRequest& request, auto* response) {
    EXPECT_EQ(request.timeout().seconds(), 60);
    *response = answer;
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"drain", "--timeout", "60"}), 0);
  EXPECT_EQ(out_, "no job was running\n0 jobs wait for the restart\n");
  answer.set_job("jobs/a1");
  answer.set_queued_jobs(1);
  EXPECT_EQ(Run({"drain", "--timeout", "60"}), 0);
  EXPECT_EQ(out_,
            "jobs/a1 has stopped and goes on after the server's restart\n"
            "1 job waits for the restart\n");
  answer.set_job_ended(true);
  EXPECT_EQ(Run({"drain", "--timeout", "60"}), 0);
  EXPECT_THAT(out_, HasSubstr("jobs/a1 has ended\n"));
  EXPECT_EQ(Run({"drain", "--timeout", "60", "--json"}), 0);
  EXPECT_EQ(out_, "{\"job\":\"jobs/a1\",\"jobEnded\":true,\"queuedJobs\":1}\n");
  EXPECT_EQ(Run({"drain", "--timeout", "-1"}), 2);
}

TEST_F(WanctlTest, AResultThatCannotBeWrittenIsNoResult) {
  server_.scripts.get_server_info = [](const auto&, auto*) { return grpc::Status::OK; };
  std::ostringstream out, err;
  out.setstate(std::ios::badbit);
  EXPECT_EQ(RunWanctl({"--server", server_.address(), "info"}, {.console = {out, err}}), 4);
  EXPECT_THAT(err.str(), HasSubstr("cannot write to stdout"));
}

// Containers and load balancers read nothing but the exit code.
TEST_F(WanctlTest, HealthIsDoneOnlyIfTheServerServes) {
  const struct {
    int status;
    int code;
    std::string says;
  } table[] = {{1, 0, "SERVING"}, {2, 3, "NOT_SERVING"}, {0, 3, "UNKNOWN"}};
  // The command has a deadline, which gRPC compares with the clock of the machine.
  now_ = absl::Now();
  for (const auto& row : table) {
    server_.scripts.health = [&row] { return row.status; };
    EXPECT_EQ(Run({"health"}), row.code);
    EXPECT_EQ(out_, row.says + "\n");
    EXPECT_EQ(Run({"health", "--format", "json"}), row.code);
    EXPECT_EQ(out_, "{\"status\":\"" + row.says + "\"}\n");
  }
  EXPECT_EQ(RunAt({"--server", "127.0.0.1:1", "health"}), 6);
}

TEST_F(WanctlTest, HealthSaysWhyTheServerDoesNotServe) {
  now_ = absl::Now();
  wan::v1::ServerInfo info;
  auto& loading = *info.add_not_serving_reasons();
  loading.set_reason("MODEL_LOADING");
  loading.set_message("model 'm' is being loaded");
  auto& disk = *info.add_not_serving_reasons();
  disk.set_reason("DISK_FULL");
  disk.set_message("1 byte\nis free");
  server_.scripts.health = [] { return 2; };
  server_.scripts.not_serving = [&info] { return info.SerializeAsString(); };
  EXPECT_EQ(Run({"health"}), 3);
  EXPECT_THAT(out_,
              testing::MatchesRegex("NOT_SERVING: model 'm' is being loaded; 1 byte.+is free\n"));
  EXPECT_EQ(Run({"health", "--json"}), 3);
  EXPECT_THAT(out_, HasSubstr("\"reason\":\"DISK_FULL\""));
  EXPECT_THAT(out_, HasSubstr("\"status\":\"NOT_SERVING\""));
  server_.scripts.not_serving = [] { return std::string("\xff\xff"); };
  EXPECT_EQ(Run({"health"}), 3);
  EXPECT_EQ(out_, "NOT_SERVING\n") << "what cannot be read is left out";
}

TEST_F(WanctlTest, UndrainSaysHowManyJobsGoOn) {
  int jobs = 2;
  server_.scripts.undrain = [&](const wan::v1::UndrainRequest&, auto* response) {
    response->set_queued_jobs(jobs);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"undrain"}), 0);
  EXPECT_EQ(out_, "the server accepts and starts jobs again; 2 jobs wait\n");
  jobs = 1;
  EXPECT_EQ(Run({"undrain"}), 0);
  EXPECT_EQ(out_, "the server accepts and starts jobs again; 1 job waits\n");
  EXPECT_EQ(Run({"undrain", "--json"}), 0);
  EXPECT_EQ(out_, "{\"queuedJobs\":1}\n");
  server_.scripts.undrain = [](const wan::v1::UndrainRequest&, auto*) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "the server is not being drained");
  };
  EXPECT_EQ(Run({"undrain"}), 3);
  EXPECT_THAT(err_, HasSubstr("the server is not being drained"));
}

}  // namespace
}  // namespace wan::client
