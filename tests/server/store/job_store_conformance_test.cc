// What every JobStore does with jobs and their events.
#include "tests/server/store/job_store_conformance.h"

#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "server/store/job_store.h"
#include "server/store/sqlite_job_store.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using wan::v1::JOB_STATE_CANCELLED;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_FAILED;
using wan::v1::JOB_STATE_QUEUED;
using wan::v1::JOB_STATE_RUNNING;

TEST_P(JobStoreTest, InsertedJobIsThereWithItsFirstEvent) {
  StoredJob job = NewJob("jobs/tied", "key");
  ASSERT_TRUE(Insert(job, "image").ok());
  const auto found = store_->Get("jobs/tied");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->tied_to_caller);
  EXPECT_EQ(found->request_digest, "digest of jobs/tied");
  EXPECT_EQ(found->job.last_sequence(), 1);
  job.job.set_last_sequence(1);
  EXPECT_EQ(found->job.SerializeAsString(), job.job.SerializeAsString());
  EXPECT_EQ(store_->Events("jobs/tied", 0, 10)->at(0).SerializeAsString(),
            NewEvent(1).SerializeAsString());
  EXPECT_EQ(ImageIn(*store_, "jobs/tied"), "image");
  EXPECT_EQ(store_->FindByRequestId("", "key")->job.name(), "jobs/tied");
}

TEST_P(JobStoreTest, MomentaryFieldsAreNotKept) {
  StoredJob job = NewJob("jobs/a");
  job.job.set_queue_position(3);
  job.job.mutable_progress()->set_step(2);
  job.job.set_last_sequence(99);
  ASSERT_TRUE(Insert(job).ok());
  const auto expect_bare = [&] {
    const wan::v1::Job found = store_->Get("jobs/a")->job;
    EXPECT_FALSE(found.has_queue_position());
    EXPECT_FALSE(found.has_progress());
    EXPECT_EQ(found.last_sequence(), 1);
  };
  expect_bare();
  ASSERT_TRUE(Apply(NewState(job, JOB_STATE_RUNNING)).ok());
  expect_bare();
}

TEST_P(JobStoreTest, NameAndRequestIdAreTakenOnce) {
  ASSERT_TRUE(Insert(NewJob("jobs/a", "key")).ok());
  EXPECT_EQ(Insert(NewJob("jobs/a")).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Insert(NewJob("jobs/b", "key")).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(absl::IsNotFound(store_->Get("jobs/b").status()));
  EXPECT_THAT(Sequences("jobs/b"), IsEmpty());
  EXPECT_TRUE(Insert(NewJob("jobs/c")).ok());
  EXPECT_TRUE(Insert(NewJob("jobs/d")).ok());  // no request_id is no key
  ASSERT_TRUE(Apply(NewState(NewJob("jobs/a", "key"), JOB_STATE_FAILED)).ok());
  EXPECT_EQ(Insert(NewJob("jobs/e", "key")).code(), absl::StatusCode::kAlreadyExists);
}

TEST_P(JobStoreTest, AJobThatCouldNotBeReadBackIsRefused) {
  const absl::Status refused = Insert(NewJob("jobs/a", "caf\xe9"));
  EXPECT_TRUE(absl::IsInternal(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("jobs/a: the wan.v1.Job has a text that is not UTF-8 in "
                        "request.request_id"));
  wan::v1::Event first = NewEvent(1);
  first.mutable_stage_started()->set_stage("caf\xe9");
  const JobAddition additions[] = {{NewJob("jobs/b"), {}, {NewEvent(1)}},
                                   {NewJob("jobs/c"), {}, {first}}};
  EXPECT_TRUE(absl::IsInternal(InsertAllInto(*store_, additions)));
  EXPECT_THAT(store_->List({})->jobs, IsEmpty());
  EXPECT_TRUE(Insert(NewJob("jobs/a", "caf\xc3\xa9")).ok());
}

TEST_P(JobStoreTest, AnEndIsStoredWhateverBytesItsTextsHave) {
  const StoredJob job = NewJob("jobs/a");
  ASSERT_TRUE(Insert(job).ok());
  JobChange end = NewState(job, JOB_STATE_FAILED);
  end.row->mutable_error()->set_message("/models/caf\xe9: is damaged");
  wan::v1::Event failed;
  failed.set_sequence(2);
  *failed.mutable_failed()->mutable_status() = end.row->error();
  end.events.push_back(failed);
  end.report.emplace().set_device("caf\xe9");
  ASSERT_TRUE(Apply(end).ok());
  EXPECT_EQ(store_->Get("jobs/a")->job.error().message(), "/models/caf\xef\xbf\xbd: is damaged");
  EXPECT_THAT(Sequences("jobs/a"), ElementsAre(1, 2));
  EXPECT_EQ(store_->Report("jobs/a")->device(), "caf\xef\xbf\xbd");
}

TEST_P(JobStoreTest, ManyThreadsWithOneRequestIdInsertOneJob) {
  std::vector<absl::Status> results(16);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = Insert(NewJob(absl::StrCat("jobs/t", i), "key")); });
  }
  for (std::thread& thread : threads) thread.join();
  int inserted = 0;
  for (const absl::Status& result : results) {
    inserted += result.ok() ? 1 : 0;
    EXPECT_TRUE(result.ok() || absl::IsAlreadyExists(result)) << result;
  }
  EXPECT_EQ(inserted, 1);
  EXPECT_THAT(store_->List({})->jobs, SizeIs(1));
}

TEST_P(JobStoreTest, UnknownJobs) {
  EXPECT_TRUE(absl::IsNotFound(store_->Get("jobs/a").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->FindByRequestId("", "key").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->FindByRequestId("", "").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Report("jobs/a").status()));
  EXPECT_EQ(ImageIn(*store_, "jobs/a"), "");
  EXPECT_THAT(Sequences("jobs/a"), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(Apply(NewState(NewJob("jobs/a"), JOB_STATE_FAILED))));
}

TEST_P(JobStoreTest, ChangesReplaceRowAndReportAndAppendEvents) {
  const StoredJob job = NewJob("jobs/a");
  ASSERT_TRUE(Insert(job).ok());
  JobChange change = NewState(job, JOB_STATE_RUNNING, 2);
  change.row->set_attempt(1);
  change.report.emplace().set_attempt(1);
  ASSERT_TRUE(Apply(change).ok());
  EXPECT_EQ(store_->Get("jobs/a")->job.state(), JOB_STATE_RUNNING);
  EXPECT_EQ(store_->Get("jobs/a")->job.attempt(), 1);
  EXPECT_EQ(store_->Get("jobs/a")->job.last_sequence(), 2);
  EXPECT_EQ(store_->Get("jobs/a")->request_digest, job.request_digest);
  EXPECT_EQ(store_->Report("jobs/a")->attempt(), 1);
  change = {"jobs/a", std::nullopt, {NewEvent(3), NewEvent(4)}, std::nullopt};
  change.report.emplace().set_attempt(2);
  ASSERT_TRUE(Apply(change).ok());
  EXPECT_EQ(store_->Get("jobs/a")->job.state(), JOB_STATE_RUNNING);
  EXPECT_EQ(store_->Report("jobs/a")->attempt(), 2);
  EXPECT_THAT(Sequences("jobs/a"), ElementsAre(1, 2, 3, 4));
}

TEST_P(JobStoreTest, ChangesAreAllOrNothing) {
  const StoredJob job = NewJob("jobs/a");
  ASSERT_TRUE(Insert(job).ok());
  const std::vector<JobChange> changes = {NewState(job, JOB_STATE_RUNNING, 2),
                                          NewState(NewJob("jobs/none"), JOB_STATE_RUNNING, 1)};
  EXPECT_TRUE(absl::IsNotFound(ApplyTo(*store_, changes)));
  EXPECT_EQ(store_->Get("jobs/a")->job.state(), JOB_STATE_QUEUED);
  EXPECT_THAT(Sequences("jobs/a"), ElementsAre(1));
  // A sequence that is taken is refused, and nothing of its change is kept.
  EXPECT_FALSE(Apply(NewState(job, JOB_STATE_RUNNING, 1)).ok());
  EXPECT_EQ(store_->Get("jobs/a")->job.state(), JOB_STATE_QUEUED);
  EXPECT_TRUE(ApplyTo(*store_, std::span(changes.data(), 1)).ok());
}

TEST_P(JobStoreTest, ImageGoesWhenTheJobHasEnded) {
  for (const wan::v1::JobState state :
       {JOB_STATE_COMPLETED, JOB_STATE_FAILED, JOB_STATE_CANCELLED}) {
    const StoredJob job = NewJob(absl::StrCat("jobs/", static_cast<int>(state)));
    const std::string image("\0binary\xff", 8);
    ASSERT_TRUE(Insert(job, image).ok());
    ASSERT_TRUE(Apply(NewState(job, JOB_STATE_RUNNING)).ok());
    EXPECT_EQ(ImageIn(*store_, job.job.name()), image);
    ASSERT_TRUE(Apply(NewState(job, state)).ok());
    EXPECT_EQ(ImageIn(*store_, job.job.name()), "");
  }
}

TEST_P(JobStoreTest, EventsFromAnySequenceInPages) {
  const StoredJob job = NewJob("jobs/a");
  ASSERT_TRUE(Insert(job).ok());
  ASSERT_TRUE(Insert(NewJob("jobs/b")).ok());
  JobChange change{"jobs/a", std::nullopt, {}, std::nullopt};
  for (int64_t sequence = 2; sequence <= 10; ++sequence) {
    change.events.push_back(NewEvent(sequence));
  }
  ASSERT_TRUE(Apply(change).ok());
  EXPECT_THAT(Sequences("jobs/a", 0, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(Sequences("jobs/a", 3, 3), ElementsAre(4, 5, 6));
  EXPECT_THAT(Sequences("jobs/a", 9, 3), ElementsAre(10));
  EXPECT_THAT(Sequences("jobs/a", 10, 3), IsEmpty());
  EXPECT_THAT(Sequences("jobs/b"), ElementsAre(1));
}

TEST_P(JobStoreTest, ListsTheNewestFirstInPages) {
  for (const char* name : {"jobs/c", "jobs/a", "jobs/d", "jobs/b"}) {
    ASSERT_TRUE(Insert(NewJob(name)).ok());
  }
  JobQuery query;
  query.limit = 3;
  auto page = store_->List(query);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(Names(*page), ElementsAre("jobs/b", "jobs/d", "jobs/a"));
  ASSERT_TRUE(Insert(NewJob("jobs/e")).ok());
  query.after = page->next;
  page = store_->List(query);
  EXPECT_THAT(Names(*page), ElementsAre("jobs/c"));
  EXPECT_FALSE(page->next.has_value());
  query.after.reset();
  query.limit = 5;
  query.after = store_->List(query)->next;
  ASSERT_TRUE(query.after.has_value()) << "a full page does not look for more";
  page = store_->List(query);
  EXPECT_THAT(page->jobs, IsEmpty());
  EXPECT_FALSE(page->next.has_value());
}

TEST_P(JobStoreTest, JobsAreListedAndFoundByTheirOwner) {
  const auto insert = [&](const char* name, const char* owner) {
    StoredJob job = NewJob(name, "key");
    job.job.set_owner(owner);
    return Insert(job);
  };
  ASSERT_TRUE(insert("jobs/a", "alice").ok());
  ASSERT_TRUE(insert("jobs/b", "bob").ok());
  ASSERT_TRUE(insert("jobs/c", "").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(insert("jobs/d", "alice")));
  EXPECT_EQ(store_->FindByRequestId("alice", "key")->job.name(), "jobs/a");
  EXPECT_EQ(store_->FindByRequestId("bob", "key")->job.name(), "jobs/b");
  EXPECT_EQ(store_->FindByRequestId("", "key")->job.name(), "jobs/c");
  EXPECT_TRUE(absl::IsNotFound(store_->FindByRequestId("carol", "key").status()));
  JobQuery query;
  query.filter = *ParseJobFilter("owner = alice");
  EXPECT_THAT(Names(*store_->List(query)), ElementsAre("jobs/a"));
  query.filter = *ParseJobFilter("owner = alice state = QUEUED");
  EXPECT_THAT(Names(*store_->List(query)), ElementsAre("jobs/a"));
  query.filter = *ParseJobFilter("owner = alice state = COMPLETED");
  EXPECT_THAT(Names(*store_->List(query)), IsEmpty());
  query.filter = {};
  EXPECT_THAT(Names(*store_->List(query)), ElementsAre("jobs/c", "jobs/b", "jobs/a"));
}

TEST_P(JobStoreTest, ListsByState) {
  const std::vector<wan::v1::JobState> states = {JOB_STATE_QUEUED, JOB_STATE_RUNNING,
                                                 JOB_STATE_COMPLETED, JOB_STATE_QUEUED};
  for (size_t i = 0; i < states.size(); ++i) {
    const StoredJob job = NewJob(absl::StrCat("jobs/", i));
    ASSERT_TRUE(Insert(job).ok());
    ASSERT_TRUE(Apply(NewState(job, states[i])).ok());
  }
  JobQuery query;
  query.filter = *ParseJobFilter("state = QUEUED OR state = COMPLETED");
  EXPECT_THAT(Names(*store_->List(query)), ElementsAre("jobs/3", "jobs/2", "jobs/0"));
  query.limit = 1;
  query.filter = *ParseJobFilter("state = QUEUED");
  query.after = store_->List(query)->next;
  EXPECT_THAT(Names(*store_->List(query)), ElementsAre("jobs/0"));
  const auto unfinished = store_->Unfinished();
  ASSERT_TRUE(unfinished.ok());
  std::vector<std::string> names;
  for (const StoredJob& stored : *unfinished) names.push_back(stored.job.name());
  EXPECT_THAT(names, ElementsAre("jobs/0", "jobs/1", "jobs/3"));
}

TEST_P(JobStoreTest, APageOfVeryLargeJobsEndsEarly) {
  for (int i = 0; i < 8; ++i) {
    StoredJob job = NewJob(absl::StrCat("jobs/", i));
    job.job.mutable_request()->set_prompt(std::string(size_t{1} << 20, 'p'));
    ASSERT_TRUE(Insert(job).ok());
  }
  JobQuery query;
  query.limit = 100;
  std::vector<std::string> names;
  int pages = 0;
  do {
    const auto page = store_->List(query);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->jobs.size(), 4u);
    for (const std::string& name : Names(*page)) names.push_back(name);
    query.after = page->next;
    ++pages;
  } while (query.after.has_value());
  EXPECT_THAT(names, ElementsAre("jobs/7", "jobs/6", "jobs/5", "jobs/4", "jobs/3", "jobs/2",
                                 "jobs/1", "jobs/0"));
  EXPECT_EQ(pages, 3);
}

TEST_P(JobStoreTest, ListsManyJobsInOnePage) {
  for (int i = 0; i < 200; ++i) {
    const StoredJob job = NewJob(absl::StrCat("jobs/", i));
    ASSERT_TRUE(Insert(job).ok());
    if (i % 2 == 0) {
      ASSERT_TRUE(Apply(NewState(job, JOB_STATE_RUNNING)).ok());
    }
  }
  JobQuery query;
  query.limit = 150;
  query.filter = *ParseJobFilter("state = QUEUED OR state = RUNNING");
  const auto page = store_->List(query);
  ASSERT_TRUE(page.ok());
  ASSERT_THAT(page->jobs, SizeIs(150));
  for (int i = 0; i < 150; ++i) {
    EXPECT_EQ(page->jobs[static_cast<size_t>(i)].job.name(), absl::StrCat("jobs/", 199 - i));
  }
  query.after = page->next;
  EXPECT_THAT(store_->List(query)->jobs, SizeIs(50));
}

TEST_P(JobStoreTest, AnOwnersListLooksAtNoOthersJobs) {
  std::vector<JobAddition> additions;
  const auto add = [&](const std::string& name, const std::string& owner) {
    JobAddition& added = additions.emplace_back();
    added.job = NewJob(name);
    added.job.job.set_owner(owner);
    added.job.job.mutable_request()->set_priority(5);
    added.events = {NewEvent(1)};
  };
  // More of others than a page looks at, before and after the owner's in every order.
  for (int i = 0; i < 1100; ++i) add(absl::StrCat("jobs/first", i), "bob");
  add("jobs/a", "alice");
  for (int i = 0; i < 1100; ++i) add(absl::StrCat("jobs/last", i), "bob");
  ASSERT_TRUE(InsertAllInto(*store_, additions).ok());
  for (const char* const order : {"create_time", "create_time desc", "end_time", "end_time desc",
                                  "priority", "priority desc"}) {
    for (const char* const filter :
         {"", "state = QUEUED", "owner = bob OR labels:x OR priority > 1", "owner = alice"}) {
      JobQuery query;
      query.owner = "alice";
      query.order = *ParseJobOrder(order);
      query.filter = *ParseJobFilter(filter);
      const auto page = store_->List(query);
      ASSERT_TRUE(page.ok()) << page.status();
      EXPECT_THAT(Names(*page), ElementsAre("jobs/a")) << order << "; " << filter;
      EXPECT_FALSE(page->next.has_value()) << order << "; " << filter;
      query.after = JobPlace{0, 0};  // from the beginning, or the end
      EXPECT_FALSE(store_->List(query)->next.has_value()) << order << "; " << filter;
      query.owner = "nobody";
      query.after.reset();
      EXPECT_THAT(store_->List(query)->jobs, IsEmpty());
      EXPECT_FALSE(store_->List(query)->next.has_value()) << order << "; " << filter;
    }
    // Nor does a filter that names another owner make it look at that one's.
    JobQuery query;
    query.owner = "alice";
    query.order = *ParseJobOrder(order);
    query.filter = *ParseJobFilter("owner = bob");
    const auto page = store_->List(query);
    EXPECT_THAT(page->jobs, IsEmpty());
    EXPECT_FALSE(page->next.has_value()) << order;
  }
}

TEST_P(JobStoreTest, APageEndsWhereItHasLookedAtManyJobs) {
  std::vector<JobAddition> additions;
  for (int i = 0; i < 2500; ++i) {
    JobAddition& added = additions.emplace_back();
    added.job = NewJob(absl::StrCat("jobs/", i));
    added.events = {NewEvent(1)};
  }
  ASSERT_TRUE(InsertAllInto(*store_, additions).ok());
  JobQuery query;
  query.filter = *ParseJobFilter("priority = 7");
  int pages = 0;
  do {
    const auto page = store_->List(query);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_THAT(page->jobs, IsEmpty());
    query.after = page->next;
    ++pages;
  } while (query.after.has_value());
  EXPECT_EQ(pages, 3);
}

TEST_P(JobStoreTest, KnowsWhoseAJobWasAfterItIsGone) {
  StoredJob job = NewJob("jobs/a");
  job.job.set_owner("alice");
  ASSERT_TRUE(Insert(job).ok());
  EXPECT_EQ(*store_->OwnerOf("jobs/a"), "alice");
  EXPECT_EQ(ReasonOf(store_->OwnerOf("jobs/b").status()), kReasonJobNotFound);
  ASSERT_TRUE(Apply(NewState(job, JOB_STATE_FAILED)).ok());
  ASSERT_TRUE(RemoveFrom(*store_, "jobs/a").ok());
  EXPECT_EQ(*store_->OwnerOf("jobs/a"), "alice");
}

TEST_P(JobStoreTest, LabelsAreFoundAsTheyAreNow) {
  StoredJob job = NewJob("jobs/a");
  (*job.job.mutable_request()->mutable_labels())["team"] = "old";
  ASSERT_TRUE(Insert(job).ok());
  (*job.job.mutable_request()->mutable_labels())["team"] = "new";
  JobChange change = NewState(job, JOB_STATE_QUEUED);
  change.labels_changed = true;
  ASSERT_TRUE(Apply(change).ok());
  JobQuery query;
  query.filter = *ParseJobFilter("labels.team = old");
  EXPECT_THAT(store_->List(query)->jobs, IsEmpty());
  query.filter = *ParseJobFilter("labels.team = new");
  EXPECT_THAT(store_->List(query)->jobs, SizeIs(1));
}

TEST_P(JobStoreTest, ManyAreAddedAllOrNone) {
  ASSERT_TRUE(Insert(NewJob("jobs/old", "taken")).ok());
  std::vector<JobAddition> additions;
  additions.push_back({NewJob("jobs/a"), {}, {NewEvent(1)}});
  additions.push_back({NewJob("jobs/b", "taken"), {}, {NewEvent(1)}});
  EXPECT_EQ(InsertAllInto(*store_, additions).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(store_->Get("jobs/a").status().code(), absl::StatusCode::kNotFound);
  additions[1] = {
      NewJob("jobs/b"), {.image = std::make_shared<const std::string>("image")}, {NewEvent(1)}};
  ASSERT_TRUE(InsertAllInto(*store_, additions).ok());
  EXPECT_EQ(ImageIn(*store_, "jobs/b"), "image");
  EXPECT_THAT(Sequences("jobs/a"), ElementsAre(1));
}

TEST_P(JobStoreTest, TheFilesOfARequestAreKeptUntilItsJobHasEnded) {
  const auto file = [](const char* bytes) { return std::make_shared<const std::string>(bytes); };
  const StoredJob job = NewJob("jobs/a");
  const JobAddition addition{
      job,
      {.image = file("image"), .initial_latents = file("noise"), .latents = file("clean")},
      {NewEvent(1)}};
  ASSERT_TRUE(InsertAllInto(*store_, std::span(&addition, 1)).ok());
  const JobAddition other{NewJob("jobs/b"), {.latents = file("others")}, {NewEvent(1)}};
  ASSERT_TRUE(InsertAllInto(*store_, std::span(&other, 1)).ok());
  const auto inputs = store_->Inputs("jobs/a");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ(*inputs->image, "image");
  EXPECT_EQ(*inputs->initial_latents, "noise");
  EXPECT_EQ(*inputs->latents, "clean");
  ASSERT_TRUE(Apply(NewState(job, JOB_STATE_RUNNING)).ok());
  EXPECT_EQ(*store_->Inputs("jobs/a")->latents, "clean");
  ASSERT_TRUE(Apply(NewState(job, JOB_STATE_FAILED)).ok());
  EXPECT_EQ(store_->Inputs("jobs/a")->image, nullptr);
  EXPECT_EQ(store_->Inputs("jobs/a")->initial_latents, nullptr);
  EXPECT_EQ(store_->Inputs("jobs/a")->latents, nullptr);
  EXPECT_EQ(store_->Inputs("jobs/b")->image, nullptr);
  EXPECT_EQ(*store_->Inputs("jobs/b")->latents, "others");
  ASSERT_TRUE(store_->Inputs("jobs/none").ok());
  const JobAddition linked{
      NewJob("jobs/c"),
      {.latents = file("kept elsewhere"), .artifacts = {{"latents", "jobs/a/artifacts/latents"}}},
      {NewEvent(1)}};
  ASSERT_TRUE(InsertAllInto(*store_, std::span(&linked, 1)).ok());
  EXPECT_EQ(store_->Inputs("jobs/c")->latents, nullptr) << "InputLinks keeps it";
}

TEST_P(JobStoreTest, ARemovedJobIsExpiredAndItsRequestIdFree) {
  const StoredJob job = NewJob("jobs/a", "id");
  ASSERT_TRUE(Insert(job).ok());
  EXPECT_EQ(ReasonOf(RemoveFrom(*store_, "jobs/a")), "JOB_NOT_ENDED");
  ASSERT_TRUE(Apply(NewState(job, JOB_STATE_COMPLETED, 2)).ok());
  ASSERT_TRUE(RemoveFrom(*store_, "jobs/a").ok());
  EXPECT_EQ(ReasonOf(store_->Get("jobs/a").status()), "EXPIRED");
  EXPECT_EQ(ReasonOf(RemoveFrom(*store_, "jobs/a")), "EXPIRED");
  EXPECT_EQ(ReasonOf(RemoveFrom(*store_, "jobs/b")), "JOB_NOT_FOUND");
  EXPECT_THAT(Sequences("jobs/a"), IsEmpty());
  EXPECT_THAT(store_->List({})->jobs, IsEmpty());
  EXPECT_TRUE(Insert(NewJob("jobs/b", "id")).ok());
}

TEST_P(JobStoreTest, SaysThatItTakesWrites) { EXPECT_TRUE(store_->CheckWritable().ok()); }

INSTANTIATE_TEST_SUITE_P(All, JobStoreTest, JobStores(), NameOfJobStore);

}  // namespace
}  // namespace wan::server
