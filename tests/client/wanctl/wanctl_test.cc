// Whole command lines against a server whose answers are written down here.
#include "client/wanctl/wanctl.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "client/sha256.h"
#include "google/rpc/error_details.pb.h"
#include "tests/client/fakes/events.h"
#include "tests/client/fakes/recording_backoff_clock.h"
#include "tests/client/fakes/scripted_server.h"
#include "tests/client/fakes/temp_folder.h"

namespace wan::client {
namespace {

using fakes::Cancelled;
using fakes::Completed;
using fakes::Failed;
using fakes::Preview;
using fakes::Queued;
using fakes::ReadFile;
using fakes::Step;
using fakes::Stream;
using google::protobuf::util::JsonStringToMessage;
using google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using wan::v1::Event;

// The messages that were printed, one a line.
template <typename Message>
std::vector<Message> FromLines(const std::string& text) {
  std::vector<Message> messages;
  for (const auto& line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    Message message;
    EXPECT_TRUE(JsonStringToMessage(std::string(line), &message).ok()) << std::string(line);
    messages.push_back(std::move(message));
  }
  return messages;
}

class WanctlTest : public testing::Test {
 protected:
  int Run(std::vector<std::string> args) {
    args.insert(args.begin(), {"--server", server_.address()});
    return RunAt(args);
  }

  // Without a server of this test.
  int RunAt(const std::vector<std::string>& args) {
    std::ostringstream out, err;
    const int code = RunWanctl(args, {.console = {out, err, 0, err_columns_},
                                      .stop = stop_.get_token(),
                                      .clock = clock_,
                                      .now = [this] { return now_; }});
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  int Generate(const std::vector<std::string>& more = {}) {
    std::vector<std::string> args = {
        "generate", "--model", "5b", "--prompt", "a cat", "--output", (folder_ / "a.mp4").string()};
    args.insert(args.end(), more.begin(), more.end());
    return Run(args);
  }

  // Generate's stream.
  void Script(Stream<Event> stream) {
    server_.scripts.generate = [this, stream](const wan::v1::GenerateRequest& request) {
      generate_requests_.Add(request);
      return stream;
    };
  }
  void Script(std::vector<Event> events, grpc::Status end = grpc::Status::OK) {
    Script(Stream<Event>{.messages = std::move(events), .end = std::move(end)});
  }

  // An artifact that the server has.
  wan::v1::Artifact Serve(wan::v1::OutputKind kind, const std::string& file,
                          const std::string& bytes) {
    Sha256 hash;
    hash.Update(bytes);
    wan::v1::Artifact artifact;
    artifact.set_name("jobs/a1/artifacts/" + file);
    artifact.set_kind(kind);
    artifact.set_size_bytes(bytes.size());
    artifact.set_sha256(hash.Finish());
    files_[artifact.name()] = bytes;
    server_.scripts.download = [this](const wan::v1::DownloadArtifactRequest& request) {
      wan::v1::DownloadArtifactResponse chunk;
      chunk.set_offset(request.offset());
      chunk.set_data(files_.at(request.name()).substr(request.offset()));
      return Stream<wan::v1::DownloadArtifactResponse>{.messages = {chunk}};
    };
    return artifact;
  }

  Event CompletedWith(int64_t sequence, const std::vector<wan::v1::Artifact>& artifacts) {
    Event event = Completed(sequence);
    event.mutable_completed()->mutable_artifacts()->Add(artifacts.begin(), artifacts.end());
    return event;
  }

  // GetJob's answer.
  void ScriptJob(const wan::v1::Job& job) {
    server_.scripts.get_job = [job](const auto&, wan::v1::Job* answer) {
      *answer = job;
      return grpc::Status::OK;
    };
  }

  const fakes::TempFolder folder_;
  fakes::ScriptedServer server_;
  fakes::RecordingBackoffClock clock_;
  fakes::Requests<wan::v1::GenerateRequest> generate_requests_;
  std::map<std::string, std::string> files_;
  std::stop_source stop_;
  absl::Time now_ = absl::FromUnixMillis(1767225600500);
  int err_columns_ = 0;
  std::string out_, err_;
};

TEST_F(WanctlTest, GenerateWritesEachOutput) {
  const auto mp4 = Serve(wan::v1::OUTPUT_KIND_MP4, "video.mp4", "mp4 bytes");
  const auto latents = Serve(wan::v1::OUTPUT_KIND_LATENTS, "latents.safetensors", "latents");
  Script({Queued(1), Step(2, 1, 1, 0.5), CompletedWith(3, {latents, mp4})});
  fakes::WriteFile(folder_ / "cat.png", "png bytes");

  EXPECT_EQ(Generate({(folder_ / "b.safetensors").string(), "--image",
                      (folder_ / "cat.png").string(), "--deadline", "90", "--seed", "7"}),
            0);
  EXPECT_EQ(ReadFile(folder_ / "a.mp4"), "mp4 bytes");
  EXPECT_EQ(ReadFile(folder_ / "b.safetensors"), "latents");
  EXPECT_EQ(out_,
            (folder_ / "a.mp4").string() + "\n" + (folder_ / "b.safetensors").string() + "\n");
  EXPECT_EQ(err_,
            "jobs/a1 queued, next to run\n"
            "Step 1/1  0.50 s\n"
            "jobs/a1 completed in 12.50 s\n");

  ASSERT_EQ(generate_requests_.All().size(), 1u);
  const wan::v1::GenerationRequest request = generate_requests_.All()[0].request();
  EXPECT_EQ(request.image(), "png bytes");
  EXPECT_EQ(request.seed(), 7);
  EXPECT_EQ(request.deadline().seconds(), 1767225690);
  EXPECT_EQ(request.deadline().nanos(), 500'000'000);
}

TEST_F(WanctlTest, GenerateOnATerminalDrawsABar) {
  err_columns_ = 80;
  Script({Queued(1), Step(2, 1, 4, 0.5, 9), Cancelled(3, "CancelJob")});
  EXPECT_EQ(Generate(), 5);
  EXPECT_THAT(err_,
              HasSubstr("\r\x1b[K[=======>                      ] 1/4  0.50 s/step  0:09 left"));
  // The bar gives way to what is said.
  EXPECT_THAT(err_, EndsWith("\r\x1b[Kwanctl: jobs/a1 was cancelled: CancelJob\n"));
}

TEST_F(WanctlTest, JsonLinesAreTheServersEvents) {
  const auto mp4 = Serve(wan::v1::OUTPUT_KIND_MP4, "video.mp4", "mp4 bytes");
  const std::vector<Event> events = {Queued(1, 2), Step(2, 1, 1, 0.5, 1),
                                     Preview(1, "\xff\xd8jpeg"), CompletedWith(3, {mp4})};
  Script(events);
  EXPECT_EQ(Generate({"--json", "--preview-interval", "1"}), 0);
  const std::vector<Event> printed = FromLines<Event>(out_);
  ASSERT_EQ(printed.size(), events.size()) << out_;
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_TRUE(MessageDifferencer::Equals(printed[i], events[i])) << out_;
  }
  EXPECT_EQ(err_, "");
  EXPECT_EQ(ReadFile(folder_ / "a.mp4"), "mp4 bytes");
}

TEST_F(WanctlTest, ARejectedRequestShowsEveryViolation) {
  google::rpc::BadRequest details;
  for (const char* field : {"width", "num_frames"}) {
    auto* violation = details.add_field_violations();
    violation->set_field(field);
    violation->set_description("is wrong");
  }
  Script({},
         fakes::ErrorWith(grpc::StatusCode::INVALID_ARGUMENT, "2 fields are wrong", {&details}));
  EXPECT_EQ(Generate(), 3);
  EXPECT_EQ(out_, "");
  const std::string said =
      "wanctl: INVALID_ARGUMENT: 2 fields are wrong\n"
      "  width: is wrong\n"
      "  num_frames: is wrong\n";
  EXPECT_EQ(err_, said);

  // For programs the same follows as one line.
  EXPECT_EQ(Generate({"--json"}), 3);
  EXPECT_EQ(out_, "");
  ASSERT_EQ(err_.substr(0, said.size()), said);
  const auto status = FromLines<google::rpc::Status>(err_.substr(said.size()));
  ASSERT_EQ(status.size(), 1u);
  EXPECT_EQ(status[0].code(), 3);
  google::rpc::BadRequest back;
  ASSERT_TRUE(status[0].details(0).UnpackTo(&back));
  EXPECT_TRUE(MessageDifferencer::Equals(back, details));
}

TEST_F(WanctlTest, EveryOutcomeHasItsExitCode) {
  const auto error = [](grpc::StatusCode code) { return grpc::Status(code, "because"); };
  const struct {
    std::vector<Event> events;
    grpc::Status end;
    int code;
    std::string says;
  } table[] = {
      {{}, error(grpc::StatusCode::NOT_FOUND), 3, "wanctl: NOT_FOUND: because\n"},
      {{}, error(grpc::StatusCode::ALREADY_EXISTS), 3, "ALREADY_EXISTS"},
      {{}, error(grpc::StatusCode::FAILED_PRECONDITION), 3, "FAILED_PRECONDITION"},
      {{}, error(grpc::StatusCode::RESOURCE_EXHAUSTED), 3, "RESOURCE_EXHAUSTED"},
      {{}, error(grpc::StatusCode::INTERNAL), 4, "INTERNAL"},
      {{}, error(grpc::StatusCode::DEADLINE_EXCEEDED), 5, "DEADLINE_EXCEEDED"},
      {{}, error(grpc::StatusCode::UNAVAILABLE), 6, "wanctl: cannot reach 127.0.0.1:"},
      {{Queued(1)},
       error(grpc::StatusCode::UNAVAILABLE),
       6,
       "wanctl: 'wanctl watch jobs/a1' tells what becomes of it\n"},
      {{Queued(1)}, error(grpc::StatusCode::RESOURCE_EXHAUSTED), 4, "RESOURCE_EXHAUSTED"},
      {{Queued(1)}, grpc::Status::OK, 4, "the stream ended before the job did"},
      {{Failed(1, 13, "out of memory")},
       grpc::Status::OK,
       4,
       "wanctl: jobs/a1 failed: INTERNAL: out of memory\n"},
      {{Failed(1, 8, "out of memory")}, error(grpc::StatusCode::RESOURCE_EXHAUSTED), 4, "failed"},
      {{Cancelled(1, "deadline exceeded")},
       error(grpc::StatusCode::CANCELLED),
       5,
       "wanctl: jobs/a1 was cancelled: deadline exceeded\n"},
      {{Completed(1)}, grpc::Status::OK, 4, "jobs/a1 has no .mp4"},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.says);
    Script(row.events, row.end);
    EXPECT_EQ(Generate(), row.code) << err_;
    EXPECT_THAT(err_, HasSubstr(row.says));
    EXPECT_EQ(out_, "");
  }
}

TEST_F(WanctlTest, NobodyThere) {
  // Port 1 of this machine: nobody listens there.
  EXPECT_EQ(RunAt({"--server", "127.0.0.1:1", "list"}), 6);
  EXPECT_THAT(err_, HasSubstr("wanctl: cannot reach 127.0.0.1:1: "));
}

TEST_F(WanctlTest, UsageErrorsMakeNoCall) {
  Script({Completed(1)});
  EXPECT_EQ(Run({"generate", "--model", "5b"}), 2);
  EXPECT_EQ(Generate({"--image", (folder_ / "none.png").string()}), 2);
  EXPECT_THAT(err_, HasSubstr("--image: cannot read"));
  EXPECT_THAT(err_, HasSubstr("No such file"));
  EXPECT_EQ(Generate({"--image", folder_.path().string()}), 2);
  EXPECT_THAT(err_, HasSubstr("Is a directory"));
  EXPECT_EQ(Generate({"--output", (folder_ / "none" / "a.mkv").string()}), 2);
  EXPECT_THAT(err_, HasSubstr("--output: there is no folder"));
  std::filesystem::create_directory(folder_ / "b.mkv");
  EXPECT_EQ(Generate({"--output", (folder_ / "b.mkv").string()}), 2);
  EXPECT_THAT(err_, HasSubstr("is a folder"));
  fakes::WriteFile(folder_ / "file", "");
  EXPECT_EQ(Generate({"--preview-interval", "1", "--preview-dir", (folder_ / "file").string()}), 2);
  EXPECT_THAT(err_, HasSubstr("--preview-dir: cannot make"));
  EXPECT_EQ(Run({"submit", "--model", "5b", "--prompt", "a", "--image", "/none.png"}), 2);
  EXPECT_EQ(Run({"download", "a1", "--output", "/none/a.mp4"}), 2);
  EXPECT_EQ(generate_requests_.All().size(), 0u);
}

TEST_F(WanctlTest, PreviewsAreWritten) {
  Script({Preview(5, "jpeg five"), Preview(10, "jpeg ten"), Cancelled(1, "x")});
  EXPECT_EQ(Generate({"--preview-interval", "5", "--preview-dir", (folder_ / "p" / "q").string()}),
            5);
  EXPECT_EQ(ReadFile(folder_ / "p" / "q" / "step-0005.jpg"), "jpeg five");
  EXPECT_EQ(ReadFile(folder_ / "p" / "q" / "step-0010.jpg"), "jpeg ten");
}

TEST_F(WanctlTest, CtrlCCancelsGenerate) {
  Stream<Event> stream{.messages = {Queued(1)}, .hold = true};
  stream.on_hold = [this] { stop_.request_stop(); };
  Script(stream);
  EXPECT_EQ(Generate(), 5);
  EXPECT_THAT(err_, HasSubstr("wanctl: interrupted\n"));
}

TEST_F(WanctlTest, ATimeoutEndsTheCommand) {
  now_ = absl::Now() - absl::Hours(1);
  EXPECT_EQ(Run({"--timeout", "1800", "list"}), 6);
  EXPECT_THAT(err_, HasSubstr("no connection within the given time"));

  now_ = absl::Now() - absl::Hours(1);
  Script({.messages = {Queued(1)}, .hold = true});
  EXPECT_EQ(Generate({"--timeout", "3601"}), 5);
  EXPECT_THAT(err_, HasSubstr("DEADLINE_EXCEEDED"));
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

TEST_F(WanctlTest, WatchEndsAsTheJobDoes) {
  fakes::Requests<wan::v1::WatchJobRequest> requests;
  const struct {
    Event end;
    int code;
  } table[] = {{Completed(9), 0}, {Failed(9, 13, "x"), 4}, {Cancelled(9, "x"), 5}};
  for (const auto& row : table) {
    server_.scripts.watch_job = [&](const wan::v1::WatchJobRequest& request) {
      requests.Add(request);
      return Stream<Event>{{Step(8, 1, 2, 0.5), row.end}};
    };
    EXPECT_EQ(Run({"watch", "a1", "--after", "7"}), row.code);
    EXPECT_THAT(out_, HasSubstr("Step 1/2  0.50 s\n"));
  }
  EXPECT_EQ(requests.All()[0].name(), "jobs/a1");
  EXPECT_EQ(requests.All()[0].after_sequence(), 7);
}

TEST_F(WanctlTest, WatchTellsOfABrokenConnectionAndGoesOn) {
  server_.scripts.watch_job = [&](const wan::v1::WatchJobRequest& request) {
    if (request.after_sequence() == 2) return Stream<Event>{{Completed(3)}};
    return Stream<Event>{{Queued(1), Step(2, 1, 2, 0.5)},
                         grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone")};
  };
  EXPECT_EQ(Run({"watch", "a1", "--json"}), 0);
  std::vector<int64_t> sequences;
  for (const Event& event : FromLines<Event>(out_)) sequences.push_back(event.sequence());
  EXPECT_THAT(sequences, ElementsAre(1, 2, 3));
  EXPECT_EQ(err_, "wanctl: no connection to " + server_.address() + ", trying again in 200ms\n");

  // A bar of stdout may stand in the same line of the terminal.
  err_columns_ = 80;
  EXPECT_EQ(Run({"watch", "a1"}), 0);
  EXPECT_THAT(err_, StartsWith("\r\x1b[Kwanctl: no connection"));
}

TEST_F(WanctlTest, CtrlCLeavesAWatchedJobAlone) {
  server_.scripts.watch_job = [&](const auto&) {
    return Stream<Event>{{Queued(1)}, grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone")};
  };
  clock_.on_wait = [this] { stop_.request_stop(); };
  EXPECT_EQ(Run({"watch", "a1"}), 5);
  EXPECT_THAT(err_, EndsWith("wanctl: interrupted\nwanctl: jobs/a1 goes on by itself\n"));
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
  EXPECT_EQ(out_,
            "Stage        Time (s)  GPU Mem (GiB)  CPU %  Sys Mem (GiB)  SM %  Load\n"
            "T5_Encoding     0.000              -      -              -     -     -\n");
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

TEST_F(WanctlTest, AResultThatCannotBeWrittenIsNoResult) {
  server_.scripts.get_server_info = [](const auto&, auto*) { return grpc::Status::OK; };
  std::ostringstream out, err;
  out.setstate(std::ios::badbit);
  EXPECT_EQ(RunWanctl({"--server", server_.address(), "info"}, {.console = {out, err}}), 4);
  EXPECT_THAT(err.str(), HasSubstr("cannot write to stdout"));
}

}  // namespace
}  // namespace wan::client
