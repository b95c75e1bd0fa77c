// Who sees and ends whose jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/auth/authenticated_server.h"
#include "tests/support/rpc_errors.h"
#include "wan/v1/telemetry.grpc.pb.h"

namespace wan::server {
namespace {

using support::ReasonOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OwnersTest : public AuthenticatedServerTest {
 protected:
  void SetUp() override {
    alice_ = NewTokenOf("alice", Role::kUser);
    bob_ = NewTokenOf("bob", Role::kUser);
    watcher_ = NewTokenOf("alice", Role::kViewer);
    admin_ = NewTokenOf("root", Role::kAdmin);
    StartServing(AuthenticatedConfig());
  }

  grpc::Status Create(const std::string& token, wan::v1::Job* job,
                      const std::string& request_id = "") {
    wan::v1::CreateJobRequest create;
    *create.mutable_request() = SmallRequest();
    create.mutable_request()->set_request_id(request_id);
    return video_->CreateJob(As(token).get(), create, job);
  }

  // The job once it has ended.
  wan::v1::Job Ended(const std::string& token, const std::string& name) {
    const auto context = As(token);
    wan::v1::WatchJobRequest watch;
    watch.set_name(name);
    const auto stream = video_->WatchJob(context.get(), watch);
    wan::v1::Event event;
    while (stream->Read(&event)) {
    }
    EXPECT_TRUE(stream->Finish().ok());
    wan::v1::GetJobRequest get;
    get.set_name(name);
    wan::v1::Job job;
    EXPECT_TRUE(video_->GetJob(As(token).get(), get, &job).ok());
    return job;
  }

  // What every method says about one job.
  std::vector<grpc::Status> EveryWay(const std::string& token, const std::string& name) {
    std::vector<grpc::Status> answers;
    wan::v1::Job job;
    wan::v1::GetJobRequest get;
    get.set_name(name);
    answers.push_back(video_->GetJob(As(token).get(), get, &job));
    wan::v1::CancelJobRequest cancel;
    cancel.set_name(name);
    answers.push_back(video_->CancelJob(As(token).get(), cancel, &job));
    wan::v1::GetReportRequest get_report;
    get_report.set_job(name);
    wan::v1::JobReport report;
    answers.push_back(video_->GetReport(As(token).get(), get_report, &report));
    {
      const auto context = As(token);
      wan::v1::WatchJobRequest watch;
      watch.set_name(name);
      const auto stream = video_->WatchJob(context.get(), watch);
      wan::v1::Event event;
      while (stream->Read(&event)) {
      }
      answers.push_back(stream->Finish());
    }
    {
      const auto context = As(token);
      wan::v1::DownloadArtifactRequest download;
      download.set_name(name + "/artifacts/video.mp4");
      const auto stream = video_->DownloadArtifact(context.get(), download);
      wan::v1::DownloadArtifactResponse chunk;
      while (stream->Read(&chunk)) {
      }
      answers.push_back(stream->Finish());
    }
    return answers;
  }

  std::vector<std::string> Listed(const std::string& token) {
    wan::v1::ListJobsResponse response;
    EXPECT_TRUE(video_->ListJobs(As(token).get(), {}, &response).ok());
    std::vector<std::string> names;
    for (const wan::v1::Job& job : response.jobs()) names.push_back(job.name());
    return names;
  }

  std::string alice_;
  std::string bob_;
  std::string watcher_;
  std::string admin_;
};

TEST_F(OwnersTest, TheJobRecordsItsOwnerAlsoOverARestart) {
  wan::v1::Job job;
  ASSERT_TRUE(Create(alice_, &job).ok());
  EXPECT_EQ(job.owner(), "alice");
  EXPECT_EQ(Ended(alice_, job.name()).owner(), "alice");
  StopServer();
  StartServing(AuthenticatedConfig());
  EXPECT_EQ(Ended(alice_, job.name()).owner(), "alice");
}

TEST_F(OwnersTest, AnotherUsersJobDoesNotExist) {
  wan::v1::Job job;
  ASSERT_TRUE(Create(alice_, &job).ok());
  Ended(alice_, job.name());
  const std::vector<grpc::Status> hidden = EveryWay(bob_, job.name());
  const std::vector<grpc::Status> missing = EveryWay(bob_, "jobs/0123456789abcdef0123");
  for (size_t i = 0; i < hidden.size(); ++i) {
    EXPECT_EQ(hidden[i].error_code(), grpc::StatusCode::NOT_FOUND) << i;
    EXPECT_EQ(ReasonOf(hidden[i]), "JOB_NOT_FOUND") << i;
    EXPECT_EQ(hidden[i].error_message(), job.name() + " does not exist") << i;
    // The same words, so that nobody learns which jobs there are.
    EXPECT_EQ(missing[i].error_message(), "jobs/0123456789abcdef0123 does not exist") << i;
  }
  for (const grpc::Status& status : EveryWay(alice_, job.name())) {
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  for (const grpc::Status& status : EveryWay(admin_, job.name())) {
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
}

TEST_F(OwnersTest, AnotherUsersDeletedJobNeverWas) {
  wan::v1::Job job;
  ASSERT_TRUE(Create(alice_, &job).ok());
  Ended(alice_, job.name());
  wan::v1::DeleteJobRequest remove;
  remove.set_name(job.name());
  google::protobuf::Empty none;
  ASSERT_TRUE(video_->DeleteJob(As(alice_).get(), remove, &none).ok());
  for (const bool restarted : {false, true}) {
    if (restarted) {
      StopServer();
      StartServing(AuthenticatedConfig());
    }
    for (const grpc::Status& status : EveryWay(bob_, job.name())) {
      EXPECT_EQ(ReasonOf(status), "JOB_NOT_FOUND");
      EXPECT_EQ(status.error_message(), job.name() + " does not exist");
    }
    for (const std::string& token : {alice_, admin_}) {
      for (const grpc::Status& status : EveryWay(token, job.name())) {
        EXPECT_EQ(ReasonOf(status), "EXPIRED");
      }
    }
  }
}

TEST_F(OwnersTest, ServerInfoNamesTheCallersJobOnly) {
  engine_.Hold("T5_Encoding");
  wan::v1::Job job;
  ASSERT_TRUE(Create(alice_, &job).ok());
  engine_.AwaitHeld("T5_Encoding");
  const auto telemetry = wan::v1::Telemetry::NewStub(channel_);
  const auto told = [&](const std::string& token) {
    wan::v1::ServerInfo info;
    EXPECT_TRUE(telemetry->GetServerInfo(As(token).get(), {}, &info).ok());
    EXPECT_EQ(info.running_jobs(), 1);
    return info.groups(0).job();
  };
  EXPECT_EQ(told(alice_), job.name());
  EXPECT_EQ(told(watcher_), job.name());
  EXPECT_EQ(told(bob_), "");
  EXPECT_EQ(told(admin_), job.name());
  engine_.Release("T5_Encoding");
}

TEST_F(OwnersTest, AListHasTheCallersJobsAndAnAdministratorsAll) {
  wan::v1::Job of_alice;
  wan::v1::Job of_bob;
  ASSERT_TRUE(Create(alice_, &of_alice).ok());
  ASSERT_TRUE(Create(bob_, &of_bob).ok());
  EXPECT_THAT(Listed(alice_), ElementsAre(of_alice.name()));
  EXPECT_THAT(Listed(watcher_), ElementsAre(of_alice.name()));
  EXPECT_THAT(Listed(bob_), ElementsAre(of_bob.name()));
  EXPECT_THAT(Listed(admin_), ElementsAre(of_bob.name(), of_alice.name()));
  EXPECT_THAT(Listed(NewTokenOf("carol", Role::kUser)), IsEmpty());
}

TEST_F(OwnersTest, RequestIdsAreUniquePerOwner) {
  wan::v1::Job of_alice;
  wan::v1::Job again;
  wan::v1::Job of_bob;
  ASSERT_TRUE(Create(alice_, &of_alice, "key").ok());
  ASSERT_TRUE(Create(alice_, &again, "key").ok());
  ASSERT_TRUE(Create(bob_, &of_bob, "key").ok());
  EXPECT_EQ(again.name(), of_alice.name());
  EXPECT_NE(of_bob.name(), of_alice.name());
  EXPECT_EQ(of_bob.owner(), "bob");
}

TEST_F(OwnersTest, AViewerSeesTheJobsOfItsPrincipalAndEndsNone) {
  wan::v1::Job job;
  ASSERT_TRUE(Create(alice_, &job).ok());
  wan::v1::GetJobRequest get;
  get.set_name(job.name());
  EXPECT_TRUE(video_->GetJob(As(watcher_).get(), get, &job).ok());
  wan::v1::CancelJobRequest cancel;
  cancel.set_name(job.name());
  EXPECT_EQ(video_->CancelJob(As(watcher_).get(), cancel, &job).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(OwnersTest, JobsOfNobodyAreForAdministrators) {
  StopServer();
  StartServing(DefaultConfig());
  const wan::v1::Job job = MustCreate();
  EXPECT_EQ(job.owner(), "");
  AwaitEnd(job.name());
  StopServer();
  StartServing(AuthenticatedConfig());
  EXPECT_THAT(Listed(alice_), IsEmpty());
  EXPECT_THAT(Listed(admin_), ElementsAre(job.name()));
  EXPECT_EQ(EveryWay(alice_, job.name())[0].error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(OwnersTest, WhatIsNoJobsNameIsAWrongField) {
  for (const std::string& name : {std::string(), std::string("jobs"), std::string("jobs/"),
                                  std::string("models/m"), std::string("jobs/../x")}) {
    EXPECT_EQ(EveryWay(bob_, name)[0].error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
  }
}

}  // namespace
}  // namespace wan::server
