// The operator's night, as the program itself has it: a disk that is full, and a SIGHUP.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/e2e/process.h"
#include "tests/support/http_get.h"
#include "wan/v1/administration.grpc.pb.h"
#include "wan/v1/telemetry.grpc.pb.h"
#include "wan/v1/video_generation.grpc.pb.h"

namespace wan::server {
namespace {

using e2e::Process;
using e2e::RunProcess;
using e2e::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class OperatorTest : public ::testing::Test {
 protected:
  // Starts the server with the settings of the file `config` behind a prefix of its command line.
  void Start(std::vector<std::string> command = {}) {
    command.insert(command.end(), {WAN_FAKE_SERVER, "--config", folder_.File("wan.yaml")});
    server_ = std::make_unique<Process>(command, folder_.File("log"));
    const std::string line = server_->ReadLine();
    ASSERT_THAT(line, HasSubstr("listening")) << Log();
    metrics_port_ = std::stoi(AddressOf(line, "metrics").substr(std::string("127.0.0.1:").size()));
    const auto channel =
        grpc::CreateChannel(AddressOf(line, "grpc"), grpc::InsecureChannelCredentials());
    video_ = wan::v1::VideoGeneration::NewStub(channel);
    telemetry_ = wan::v1::Telemetry::NewStub(channel);
    health_ = grpc::health::v1::Health::NewStub(channel);
  }

  static std::string AddressOf(const std::string& line, const std::string& name) {
    const std::string before = "\"" + name + "\":\"";
    const size_t begin = line.find(before) + before.size();
    return line.substr(begin, line.find('"', begin) - begin);
  }

  void Configure(const std::string& more) const {
    std::ofstream(folder_.File("wan.yaml"))
        << "listen: 127.0.0.1:0\nmetrics_listen: 127.0.0.1:0\nhttp_listen: none\ndata_dir: "
        << folder_.File("data") << "\nmodels: {m: \"synthetic:ti2v-5b\"}\n"
        << more;
  }

  std::string Log() const { return e2e::ReadWholeFile(folder_.File("log")); }

  // Waits until the log has this text; the log.
  std::string AwaitLog(const std::string& text) const {
    return e2e::AwaitInFile(folder_.File("log"), text);
  }

  // Waits until health has this value; what Check says beside it.
  wan::v1::ServerInfo AwaitHealth(grpc::health::v1::HealthCheckResponse::ServingStatus wanted) {
    for (;;) {
      grpc::ClientContext context;
      grpc::health::v1::HealthCheckResponse response;
      EXPECT_TRUE(health_->Check(&context, {}, &response).ok());
      if (response.status() != wanted) continue;
      wan::v1::ServerInfo info;
      const auto& metadata = context.GetServerTrailingMetadata();
      const auto why = metadata.find("wan-not-serving-bin");
      if (why != metadata.end()) {
        EXPECT_TRUE(info.ParseFromArray(why->second.data(), static_cast<int>(why->second.size())));
      }
      return info;
    }
  }
  void AwaitServing() { AwaitHealth(grpc::health::v1::HealthCheckResponse::SERVING); }

  std::string Ready() const {
    const auto answer = support::HttpGet("127.0.0.1", metrics_port_, "/readyz");
    return answer.ok() ? std::to_string(answer->status) + " " + answer->body : "";
  }

  grpc::Status Create(wan::v1::Job* job) {
    grpc::ClientContext context;
    wan::v1::CreateJobRequest request;
    request.mutable_request()->set_model("m");
    request.mutable_request()->set_prompt("a cat");
    return video_->CreateJob(&context, request, job);
  }
  void AwaitCompleted(const std::string& name) {
    wan::v1::Job job;
    while (job.state() != wan::v1::JOB_STATE_COMPLETED) {
      grpc::ClientContext context;
      wan::v1::GetJobRequest request;
      request.set_name(name);
      ASSERT_TRUE(video_->GetJob(&context, request, &job).ok());
    }
  }
  grpc::Status Delete(const std::string& name) {
    grpc::ClientContext context;
    wan::v1::DeleteJobRequest request;
    request.set_name(name);
    google::protobuf::Empty response;
    return video_->DeleteJob(&context, request, &response);
  }

  void Terminate() {
    server_->Signal(SIGTERM);
    EXPECT_EQ(server_->Wait(), 0) << Log();
  }

  const TemporaryFolder folder_;
  std::unique_ptr<Process> server_;
  int metrics_port_ = 0;
  std::unique_ptr<wan::v1::VideoGeneration::Stub> video_;
  std::unique_ptr<wan::v1::Telemetry::Stub> telemetry_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

using Health = grpc::health::v1::HealthCheckResponse;

TEST_F(OperatorTest, SighupReloadsWhatCanBeAndSaysWhatNeedsARestart) {
  Configure("log_level: info\nqueue_capacity: 7\n");
  Start();
  AwaitServing();
  Configure("log_level: debug\nqueue_capacity: 8\nretain_completed: 1\n");
  server_->Signal(SIGHUP);
  const std::string log = AwaitLog("settings need a restart");
  EXPECT_THAT(log,
              HasSubstr("\"message\":\"reloaded\",\"settings\":\"retain_completed, log_level\""));
  EXPECT_THAT(log, HasSubstr("\"settings\":\"queue_capacity\""));
  // The new settings hold: stages are logged, and of two jobs one stays.
  wan::v1::Job first;
  wan::v1::Job second;
  ASSERT_TRUE(Create(&first).ok());
  AwaitCompleted(first.name());
  AwaitLog("\"stage finished\"");
  ASSERT_TRUE(Create(&second).ok());
  AwaitCompleted(second.name());
  server_->Signal(SIGHUP);  // begins a round of the retention
  AwaitLog("\"message\":\"retention\"");
  Terminate();
}

TEST_F(OperatorTest, ErrorsInTheNewFileChangeNothingAndEndNothing) {
  Configure("log_level: info\n");
  Start();
  AwaitServing();
  Configure("log_level: loud\nquue_capacity: 8\n");
  server_->Signal(SIGHUP);
  const std::string log = AwaitLog("\"message\":\"reloaded\"");
  EXPECT_THAT(log, AllOf(HasSubstr("\"not reloaded\",\"what\":\"settings\""),
                         HasSubstr("log_level is 'loud'"), HasSubstr("quue_capacity")));
  std::filesystem::remove(folder_.File("wan.yaml"));
  server_->Signal(SIGHUP);
  AwaitLog("wan.yaml: does not exist");
  EXPECT_THAT(Ready(), HasSubstr("200 ok"));
  wan::v1::Job job;
  EXPECT_TRUE(Create(&job).ok());
  Terminate();
}

TEST_F(OperatorTest, ReadyAndHealthSayWhyAtTheStart) {
  setenv("WAN_FAKE_HOLD", "Model_Initialization", 1);
  Configure("");
  Start();
  unsetenv("WAN_FAKE_HOLD");
  const wan::v1::ServerInfo why = AwaitHealth(Health::NOT_SERVING);
  ASSERT_EQ(why.not_serving_reasons_size(), 1);
  EXPECT_EQ(why.not_serving_reasons(0).reason(), "MODEL_LOADING");
  AwaitLog("\"message\":\"not serving\",\"reasons\":\"MODEL_LOADING\"");
  EXPECT_THAT(Ready(), testing::MatchesRegex("503 not serving: model 'm' (is being|waits to be) "
                                             "loaded\n"));
  grpc::ClientContext context;
  wan::v1::ServerInfo info;
  ASSERT_TRUE(telemetry_->GetServerInfo(&context, {}, &info).ok());
  ASSERT_EQ(info.not_serving_reasons_size(), 1);
  EXPECT_EQ(info.not_serving_reasons(0).reason(), "MODEL_LOADING");
  Terminate();
}

bool MayMount() {
  return RunProcess({"unshare", "--user", "--map-root-user", "--mount", "true"}).exit_code == 0;
}

// Starts a program behind it on a disk of 24 MiB that a script prepares; $0 is the data folder.
std::vector<std::string> OnSmallDisk(const std::string& script, const std::string& folder) {
  return {"unshare",
          "--user",
          "--map-root-user",
          "--mount",
          "sh",
          "-c",
          "mount -t tmpfs -o size=24m tmpfs \"$0\" && " + script + " exec \"$@\"",
          folder};
}

// A disk of its own, 24 MiB large, which a test fills to its last byte.
class FullDiskTest : public OperatorTest {
 protected:
  void SetUp() override {
    if (!MayMount()) GTEST_SKIP() << "this user cannot mount a file system of its own";
    std::filesystem::create_directory(folder_.File("data"));
    setenv("WAN_FAKE_OUTPUT_BYTES", "1000000", 1);
    Configure("disk_reserve: 6291456\n");
    Start(OnSmallDisk("", folder_.File("data")));
    unsetenv("WAN_FAKE_OUTPUT_BYTES");
    AwaitServing();
  }

  // The data folder as the server sees it.
  std::string Disk() const {
    return "/proc/" + std::to_string(server_->pid()) + "/root" + folder_.File("data");
  }

  // Takes all that is free but for this.
  void FillUpTo(uint64_t bytes) {
    for (;;) {
      const uint64_t free = std::filesystem::space(Disk()).available;
      if (free <= bytes) return;
      std::ofstream file(Disk() + "/filler", std::ios::app | std::ios::binary);
      file << std::string(free - bytes, 'x') << std::flush;
      if (!file) return;
    }
  }
  void EmptyDisk() { std::filesystem::remove(Disk() + "/filler"); }
};

TEST_F(FullDiskTest, HealthFollowsTheRoomOnTheDisk) {
  FillUpTo(5 << 20);
  const wan::v1::ServerInfo why = AwaitHealth(Health::NOT_SERVING);
  ASSERT_EQ(why.not_serving_reasons_size(), 1);
  EXPECT_EQ(why.not_serving_reasons(0).reason(), "DISK_FULL");
  EXPECT_THAT(why.not_serving_reasons(0).message(),
              AllOf(HasSubstr("5.0 MiB free"), HasSubstr("6.6 MiB must be free")));
  EXPECT_THAT(Ready(), HasSubstr("503 not serving: the disk of the data folder has 5.0 MiB free"));
  wan::v1::Job job;
  EXPECT_EQ(Create(&job).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  AwaitLog(
      "\"level\":\"warning\",\"message\":\"not serving\",\"reasons\":"
      "\"DISK_FULL\"");
  EmptyDisk();
  AwaitServing();
  EXPECT_THAT(Ready(), HasSubstr("200"));
  Terminate();
}

TEST_F(FullDiskTest, DeletingJobsWorksAndBringsTheServerBack) {
  std::vector<std::string> done;
  for (int i = 0; i < 8; ++i) {
    wan::v1::Job job;
    ASSERT_TRUE(Create(&job).ok()) << Log();
    AwaitCompleted(job.name());
    done.push_back(job.name());
  }
  FillUpTo(0);
  AwaitHealth(Health::NOT_SERVING);
  for (const std::string& name : done) {
    const grpc::Status deleted = Delete(name);
    EXPECT_TRUE(deleted.ok()) << deleted.error_message();
    EXPECT_FALSE(std::filesystem::exists(Disk() + "/artifacts/" + name.substr(5)));
    FillUpTo(0);  // somebody else takes what becomes free
  }
  EmptyDisk();
  AwaitServing();
  wan::v1::Job job;
  EXPECT_TRUE(Create(&job).ok());
  AwaitCompleted(job.name());
  Terminate();
}

// Nothing but the room that is kept for it lets this server open its database for writing.
TEST_F(OperatorTest, OnADiskThatIsFullAtTheStartJobsCanBeDeleted) {
  if (!MayMount()) GTEST_SKIP() << "this user cannot mount a file system of its own";
  setenv("WAN_FAKE_OUTPUT_BYTES", "1000000", 1);
  Configure("disk_reserve: 1048576\n");
  Start();
  unsetenv("WAN_FAKE_OUTPUT_BYTES");
  AwaitServing();
  wan::v1::Job first;
  wan::v1::Job second;
  for (wan::v1::Job* const job : {&first, &second}) {
    ASSERT_TRUE(Create(job).ok());
    AwaitCompleted(job->name());
  }
  Terminate();
  std::filesystem::rename(folder_.File("data"), folder_.File("before"));
  std::filesystem::create_directory(folder_.File("data"));
  Start(OnSmallDisk(
      "cp -a --sparse=never " + folder_.File("before") +
          "/. \"$0\" && { dd if=/dev/zero of=\"$0\"/filler bs=4k 2>/dev/null; true; } &&",
      folder_.File("data")));
  const wan::v1::ServerInfo why = AwaitHealth(Health::NOT_SERVING);
  ASSERT_GE(why.not_serving_reasons_size(), 1);
  wan::v1::Job refused;
  EXPECT_FALSE(Create(&refused).ok());
  for (const wan::v1::Job& job : {first, second}) {
    const grpc::Status deleted = Delete(job.name());
    EXPECT_TRUE(deleted.ok()) << deleted.error_message();
  }
  AwaitServing();  // their files are gone, and the reserve is small
  Terminate();
}

}  // namespace
}  // namespace wan::server
