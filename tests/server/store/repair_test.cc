// A database that is damaged at a page of every kind: the server refuses it or serves what is
// whole, and a repair keeps all that can be read and names the rest.
#include "server/store/repair.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/job_inputs.h"
#include "server/store/database_pages.h"
#include "server/store/digest.h"
#include "server/store/salvage.h"
#include "server/store/sqlite_job_store.h"
#include "tests/server/jobs/test_support.h"
#include "tests/server/store/blocking_writes.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr size_t kPageBytes = 4096;
const absl::Time kNow = absl::FromUnixSeconds(1'767'225'600);

class RepairTest : public testing::Test {
 protected:
  static std::string NameOf(int i) { return absl::StrCat("jobs/", i); }

  // Adds jobs with rows, events and reports of several sizes: of three jobs, one completes, one
  // fails and one waits with an image and latents.
  static void Fill(JobStore& store, int first, int count) {
    for (int i = first; i < first + count; ++i) {
      StoredJob stored;
      wan::v1::Job& job = stored.job;
      const std::string image = absl::StrCat("PNG", std::string(9000, 'i'), i);
      job.set_name(NameOf(i));
      job.set_state(wan::v1::JOB_STATE_QUEUED);
      job.mutable_request()->set_prompt(std::string(i % 4 == 0 ? 9000 : 700, 'p'));
      job.mutable_request()->set_request_id(absl::StrCat("request ", i));
      job.set_image_sha256(Sha256Hex(image));
      const std::string latents = absl::StrCat("latents", std::string(5000, 'l'), i);
      job.mutable_request()->mutable_latents()->set_sha256(Sha256Hex(latents));
      const JobAddition addition{stored,
                                 {.image = std::make_shared<const std::string>(image),
                                  .latents = std::make_shared<const std::string>(latents)},
                                 {EventOf(job, 1)}};
      ASSERT_TRUE(InsertAllInto(store, std::span(&addition, 1)).ok());
      if (i % 3 == 2) continue;
      JobChange end{job.name(), job, {}, std::nullopt};
      end.row->set_state(i % 3 == 0 ? wan::v1::JOB_STATE_COMPLETED : wan::v1::JOB_STATE_FAILED);
      end.row->mutable_end_time()->set_seconds(1000 + i);
      if (i % 3 == 0) end.row->add_artifacts()->set_size_bytes(100);
      for (int sequence = 2; sequence <= 12; ++sequence) {
        end.events.push_back(EventOf(job, sequence));
      }
      end.events.push_back(EventOf(job, 13));
      if (i % 3 == 0) {
        *end.events.back().mutable_completed()->mutable_artifacts() = end.row->artifacts();
      } else {
        end.events.back().mutable_failed();
      }
      end.report.emplace().set_name(absl::StrCat(job.name(), "/report"));
      end.report->set_job(job.name());
      end.report->set_device(std::string(300, 'd'));
      ASSERT_TRUE(ApplyTo(store, std::span(&end, 1)).ok());
    }
  }
  static wan::v1::Event EventOf(const wan::v1::Job& job, int sequence) {
    wan::v1::Event event;
    event.set_job(job.name());
    event.set_sequence(sequence);
    event.mutable_stage_started()->set_stage(std::string(100, 's'));
    return event;
  }

  // A folder with a database of kJobs jobs, of which some were removed.
  void MakeDatabase() {
    fs::create_directory(whole_);
    auto store = OpenSqliteJobStore(whole_ / "jobs.db");
    ASSERT_TRUE(store.ok()) << store.status();
    Fill(**store, 0, kJobs);
    for (int i = 0; i < kRemoved; i += 3) ASSERT_TRUE(RemoveFrom(**store, NameOf(i)).ok());
    // Into the middle of the tables, so that their trees are not the ones of a fresh file.
    Fill(**store, kJobs, 3);
  }

  fs::path Copy() {
    const fs::path copy = folder_.path() / absl::StrCat("copy", ++copies_);
    CopyFolder(whole_, copy);
    return copy;
  }

  static void Overwrite(const fs::path& file, size_t offset, size_t bytes, char with = '\xa5') {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(offset));
    stream << std::string(bytes, with);
  }

  // All jobs of a database, of which every one must be sound.
  static std::set<std::string> JobsOf(JobStore& store) {
    std::set<std::string> names;
    JobQuery query;
    query.limit = 1000;
    const auto page = store.List(query);
    EXPECT_TRUE(page.ok()) << page.status();
    for (const StoredJob& stored : page->jobs) names.insert(stored.job.name());
    return names;
  }

  // Repairs, opens the result, and checks that every job is whole or named as a loss.
  RepairResult Repair(const fs::path& folder, std::set<std::string>* jobs = nullptr) {
    const auto result = RepairDatabase(folder, kNow);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    auto store = OpenSqliteJobStore(folder / "jobs.db");
    EXPECT_TRUE(store.ok()) << store.status();
    if (!store.ok()) return *result;
    const std::set<std::string> found = JobsOf(**store);
    const std::string losses = absl::StrJoin(result->losses, "\n");
    const bool unnamed = losses.find("is named nowhere else") != std::string::npos;
    for (int i = 0; i < kJobs + 3; ++i) {
      const std::string name = NameOf(i);
      if (i < kRemoved && i % 3 == 0) {
        EXPECT_FALSE(found.contains(name)) << name << " was removed";
        continue;
      }
      const bool named = losses.find(absl::StrCat(name, ":")) != std::string::npos ||
                         losses.find(absl::StrCat(name, " is lost")) != std::string::npos;
      EXPECT_TRUE(found.contains(name) || named || unnamed) << name << " is lost\n" << losses;
      if (!found.contains(name) || named) continue;
      const auto events = (*store)->Events(name, 0, 100);
      EXPECT_TRUE(events.ok()) << events.status();
      const auto job = (*store)->Get(name);
      EXPECT_EQ(events->size(), IsFinal(job->job.state()) ? 13U : 1U) << name;
      if (!IsFinal(job->job.state())) {
        const auto inputs = (*store)->Inputs(name);
        const bool whole = inputs.ok() && MissingInput(job->job, *inputs).empty();
        EXPECT_TRUE(whole) << name;
        if (!whole) continue;
        EXPECT_EQ(Sha256Hex(*inputs->image), job->job.image_sha256());
        EXPECT_EQ(Sha256Hex(*inputs->latents), job->job.request().latents().sha256());
      } else {
        EXPECT_TRUE((*store)->Report(name).ok() || unnamed) << name;
      }
    }
    if (jobs != nullptr) *jobs = found;
    // It works.
    Fill(**store, 1000, 1);
    return *result;
  }

  // The server refuses the database with advice, or serves what is whole.
  static void ExpectRefusedOrServed(const fs::path& folder) {
    auto store = OpenSqliteJobStore(folder / "jobs.db");
    if (!store.ok()) {
      EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss) << store.status();
      EXPECT_THAT(std::string(store.status().message()), HasSubstr("wanserve repair"));
      return;
    }
    EXPECT_THAT(JobsOf(**store), testing::Not(IsEmpty()));
  }

  static constexpr int kJobs = 150;
  static constexpr int kRemoved = 60;
  static constexpr size_t kLive = kJobs + 3 - kRemoved / 3;
  TempFolder folder_;
  const fs::path whole_ = folder_.path() / "whole";
  int copies_ = 0;
};

TEST_F(RepairTest, AWholeDatabaseIsLeftAsItIs) {
  MakeDatabase();
  const auto result = RepairDatabase(whole_, kNow);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->was_whole);
  EXPECT_EQ(std::distance(fs::directory_iterator(whole_), fs::directory_iterator()), 1);
}

TEST_F(RepairTest, WhatTheServerUsesIsNotRepaired) {
  MakeDatabase();
  auto store = OpenSqliteJobStore(whole_ / "jobs.db");
  ASSERT_TRUE(store.ok());
  const auto result = RepairDatabase(whole_, kNow);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("stop it"));
  EXPECT_EQ(RepairDatabase(folder_.path() / "none", kNow).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(RepairTest, TheHeader) {
  MakeDatabase();
  for (const size_t bytes : {size_t{16}, size_t{100}, kPageBytes}) {
    const fs::path copy = Copy();
    Overwrite(copy / "jobs.db", 0, bytes);
    ExpectRefusedOrServed(copy);
    std::set<std::string> jobs;
    const RepairResult result = Repair(copy, &jobs);
    EXPECT_THAT(jobs, SizeIs(kLive)) << bytes << " bytes\n" << absl::StrJoin(result.losses, "\n");
    EXPECT_TRUE(fs::exists(result.kept));
    EXPECT_THAT(result.kept.string(), HasSubstr("jobs.db.damaged-20260101T000000Z"));
  }
}

// Damages every page of a kind, one at a time.
class DamagedPageTest : public RepairTest {
 protected:
  struct Pages {
    std::vector<uint32_t> interior_tables;
    std::vector<uint32_t> interior_indexes;
    std::vector<uint32_t> leaf_tables;
    std::vector<uint32_t> leaf_indexes;
    std::vector<uint32_t> free;
    std::vector<uint32_t> others;  // overflow pages and the map of pointers
  };
  Pages Find() const {
    Pages found;
    const auto pages = DatabasePages::Open(whole_ / "jobs.db");
    EXPECT_TRUE(pages.ok());
    found.free = pages->FreePages();
    const std::set<uint32_t> free(found.free.begin(), found.free.end());
    for (uint32_t number = 2; number <= pages->count(); ++number) {
      if (free.contains(number)) continue;
      const auto page = pages->ReadPage(number);
      if (!page.has_value()) {
        found.others.push_back(number);
        continue;
      }
      switch (page->kind) {
        case BtreePage::Kind::kInteriorTable:
          found.interior_tables.push_back(number);
          break;
        case BtreePage::Kind::kInteriorIndex:
          found.interior_indexes.push_back(number);
          break;
        case BtreePage::Kind::kLeafTable:
          found.leaf_tables.push_back(number);
          break;
        case BtreePage::Kind::kLeafIndex:
          found.leaf_indexes.push_back(number);
          break;
      }
    }
    return found;
  }

  // Damages each of the pages, the first or all bytes of it, and gives the fewest jobs that a
  // repair kept.
  size_t DamageEach(const std::vector<uint32_t>& pages) {
    EXPECT_THAT(pages, testing::Not(IsEmpty()));
    size_t fewest = kLive;
    const size_t step = std::max<size_t>(1, pages.size() / 12);
    for (size_t i = 0; i < pages.size(); i += step) {
      for (const size_t bytes : {size_t{8}, kPageBytes}) {
        const fs::path copy = Copy();
        Overwrite(copy / "jobs.db", (pages[i] - 1) * kPageBytes, bytes);
        SCOPED_TRACE(absl::StrCat("page ", pages[i], ", ", bytes, " bytes"));
        const fs::path opened = copy.string() + "-opened";
        CopyFolder(copy, opened);
        ExpectRefusedOrServed(opened);
        std::set<std::string> jobs;
        Repair(copy, &jobs);
        fewest = std::min(fewest, jobs.size());
        fs::remove_all(copy);
        fs::remove_all(opened);
      }
    }
    return fewest;
  }
};

TEST_F(DamagedPageTest, InteriorOfATable) {
  MakeDatabase();
  EXPECT_EQ(DamageEach(Find().interior_tables), kLive) << "its leaves are still there";
}

TEST_F(DamagedPageTest, InteriorOfAnIndex) {
  MakeDatabase();
  EXPECT_EQ(DamageEach(Find().interior_indexes), kLive);
}

TEST_F(DamagedPageTest, LeafOfATable) {
  MakeDatabase();
  EXPECT_GE(DamageEach(Find().leaf_tables), kLive - 5) << "one page of rows";
}

TEST_F(DamagedPageTest, LeafOfAnIndexOrOfEvents) {
  MakeDatabase();
  EXPECT_EQ(DamageEach(Find().leaf_indexes), kLive) << "events are lost, and no job with them";
}

TEST_F(DamagedPageTest, OverflowAndPointers) {
  MakeDatabase();
  EXPECT_GE(DamageEach(Find().others), kLive - 1) << "the job of the page";
}

TEST_F(DamagedPageTest, Freelist) {
  MakeDatabase();
  EXPECT_EQ(DamageEach(Find().free), kLive);
}

TEST_F(RepairTest, ACutFile) {
  MakeDatabase();
  const fs::path copy = Copy();
  fs::resize_file(copy / "jobs.db", fs::file_size(copy / "jobs.db") / 2);
  ExpectRefusedOrServed(copy);
  std::set<std::string> jobs;
  EXPECT_THAT(Repair(copy, &jobs).losses, testing::Not(IsEmpty()));
  EXPECT_GT(jobs.size(), kLive / 4);
}

TEST_F(RepairTest, APageOfTheWriteAheadLogCostsNoMoreThanItself) {
  MakeDatabase();
  const fs::path live = Copy();
  fs::path copy;
  size_t all = 0;
  {
    auto store = OpenSqliteJobStore(live / "jobs.db");
    ASSERT_TRUE(store.ok());
    Fill(**store, 2000, 12);
    all = JobsOf(**store).size();
    copy = live.string() + "-killed";
    CopyFolder(live, copy);
  }
  const fs::path log = copy / "jobs.db-wal";
  const size_t frames = (fs::file_size(log) - 32) / (kPageBytes + 24);
  ASSERT_GT(frames, 40U);
  Overwrite(log, 32 + (kPageBytes + 24) * (frames / 3) + 24 + 100, 50);
  const fs::path opened = copy.string() + "-opened";
  CopyFolder(copy, opened);
  size_t served = 0;
  {
    auto store = OpenSqliteJobStore(opened / "jobs.db");
    ASSERT_TRUE(store.ok()) << store.status();
    served = JobsOf(**store).size();
  }
  std::set<std::string> jobs;
  const RepairResult result = Repair(copy, &jobs);
  EXPECT_FALSE(result.was_whole);
  EXPECT_LT(served, all) << "SQLite ends at the damaged page";
  EXPECT_GE(jobs.size(), all - 5);
  EXPECT_TRUE(fs::exists(result.kept.string() + "-wal"));
  EXPECT_THAT(absl::StrJoin(result.losses, "\n"), HasSubstr("1 page of the write-ahead log"));
}

TEST_F(RepairTest, OfTwoRowsOfOneJobTheOneThatIsFartherCounts) {
  // The file of a store with one job in this state, and the place of its row.
  const auto with_job = [&](wan::v1::JobState state) {
    const fs::path file = folder_.path() / absl::StrCat("job in state ", static_cast<int>(state));
    if (!fs::exists(file)) {
      auto store = OpenSqliteJobStore(file);
      EXPECT_TRUE(store.ok()) << store.status();
      StoredJob stored;
      stored.job.set_name(NameOf(1));
      stored.job.set_state(state);
      EXPECT_TRUE(InsertInto(**store, stored, "", std::vector{EventOf(stored.job, 1)}).ok());
    }
    const auto pages = DatabasePages::Open(file);
    EXPECT_TRUE(pages.ok()) << pages.status();
    return std::pair(file, FindRows(*pages).jobs.at(1).place);
  };
  const std::vector<wan::v1::JobState> states = {
      wan::v1::JOB_STATE_QUEUED, wan::v1::JOB_STATE_RUNNING, wan::v1::JOB_STATE_COMPLETED};
  for (size_t earlier = 0; earlier < states.size(); ++earlier) {
    for (size_t later = 0; later < states.size(); ++later) {
      SCOPED_TRACE(absl::StrCat(states[earlier], " before ", states[later]));
      const fs::path file = folder_.path() / "both";
      fs::copy_file(with_job(states[earlier]).first, file, fs::copy_options::overwrite_existing);
      const auto [other, row] = with_job(states[later]);
      std::string page(kPageBytes, 0);
      std::ifstream from(other, std::ios::binary);
      from.seekg(static_cast<std::streamoff>((row.page - 1) * kPageBytes));
      from.read(page.data(), static_cast<std::streamsize>(page.size()));
      std::ofstream(file, std::ios::binary | std::ios::app) << page;
      // Without the table of tables no page says to which table it belongs.
      Overwrite(file, 100, kPageBytes - 100);
      const auto pages = DatabasePages::Open(file);
      ASSERT_TRUE(pages.ok()) << pages.status();
      const Salvage found = FindRows(*pages);
      ASSERT_THAT(found.jobs, SizeIs(1));
      EXPECT_EQ(found.jobs.at(1).state, states[std::max(earlier, later)]);
    }
  }
}

TEST_F(RepairTest, APageThatIsDamagedInPartCountsAndCostsWhatIsDamaged) {
  MakeDatabase();
  const fs::path file = Copy() / "jobs.db";
  const auto whole = DatabasePages::Open(file);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const Salvage all = FindRows(*whole);
  EXPECT_EQ(all.damaged_pages, 0);
  const uint32_t leaf = all.jobs.begin()->second.place.page;
  // The first pointer to a cell, which now lies outside of the page.
  Overwrite(file, (leaf - 1) * kPageBytes + 8, 2, '\xff');
  const auto damaged = DatabasePages::Open(file);
  ASSERT_TRUE(damaged.ok()) << damaged.status();
  const Salvage left = FindRows(*damaged);
  EXPECT_EQ(left.damaged_pages, 1);
  EXPECT_EQ(left.jobs.size() + 1, all.jobs.size());
}

TEST_F(RepairTest, AnInterruptedRepairIsDoneAgain) {
  MakeDatabase();
  Overwrite(whole_ / "jobs.db", 0, kPageBytes);
  // As after a kill, just before the new file is put in place.
  fs::create_hard_link(whole_ / "jobs.db", whole_ / "jobs.db.damaged-x");
  std::ofstream(whole_ / "jobs.db-repairing") << "jobs.db.damaged-x";
  EXPECT_TRUE(RepairIsPending(whole_ / "jobs.db"));
  const auto refused = OpenSqliteJobStore(whole_ / "jobs.db");
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("run 'wanserve repair"));
  std::set<std::string> jobs;
  EXPECT_EQ(Repair(whole_, &jobs).kept.filename(), "jobs.db.damaged-x");
  EXPECT_THAT(jobs, SizeIs(kLive));
  EXPECT_FALSE(RepairIsPending(whole_ / "jobs.db"));
}

TEST_F(RepairTest, ReportsToWebhooksAreKept) {
  MakeDatabase();
  const fs::path folder = Copy();
  {
    auto store = OpenSqliteJobStore(folder / "jobs.db");
    ASSERT_TRUE(store.ok()) << store.status();
    StoredJob stored;
    stored.job.set_name("jobs/told");
    stored.job.set_state(wan::v1::JOB_STATE_QUEUED);
    stored.job.mutable_request()->set_webhook_url("https://example.com/end");
    ASSERT_TRUE(InsertInto(**store, stored, "", std::vector{EventOf(stored.job, 1)}).ok());
    JobChange end{stored.job.name(), stored.job, {EventOf(stored.job, 2)}, std::nullopt};
    end.row->set_state(wan::v1::JOB_STATE_COMPLETED);
    end.events.back().mutable_completed();
    ASSERT_TRUE(ApplyTo(**store, std::span(&end, 1)).ok());
  }
  Overwrite(folder / "jobs.db", 0, 16);
  ASSERT_TRUE(RepairDatabase(folder, kNow).ok());
  auto store = OpenSqliteJobStore(folder / "jobs.db");
  ASSERT_TRUE(store.ok()) << store.status();
  const auto told = (*store)->webhooks().TakeWebhook(
      (*store)->webhooks().Webhooks(0, 1)->front().number, kNow + absl::Minutes(1));
  ASSERT_TRUE(told.ok() && told->has_value()) << told.status();
  EXPECT_EQ((*told)->job.name(), "jobs/told");
  EXPECT_EQ((*told)->attempts, 1);
}

TEST_F(RepairTest, FilesWhoseJobsAreGoneAreListed) {
  MakeDatabase();
  for (const char* const job : {"0", "100", "unknown"}) {
    fs::create_directories(whole_ / "artifacts" / job);
    std::ofstream(whole_ / "artifacts" / job / "video.mp4") << "12345";
  }
  Overwrite(whole_ / "jobs.db", 0, 100);
  const RepairResult result = Repair(whole_);
  EXPECT_THAT(result.unknown_files,
              ElementsAre(absl::StrCat((whole_ / "artifacts" / "unknown").string(), " (5 bytes)")))
      << "job 0 was removed, and the next start removes its files";
}

TEST_F(RepairTest, ARepairedDatabaseKeepsTheOrderOfTheJobs) {
  MakeDatabase();
  const auto waiting = [&] {
    std::vector<std::string> names;
    auto store = OpenSqliteJobStore(whole_ / "jobs.db");
    const auto jobs = (*store)->Unfinished();
    for (const StoredJob& stored : *jobs) names.push_back(stored.job.name());
    return names;
  };
  const std::vector<std::string> before = waiting();
  Overwrite(whole_ / "jobs.db", 0, kPageBytes);
  Repair(whole_);
  EXPECT_EQ(waiting(), before);
  auto store = OpenSqliteJobStore(whole_ / "jobs.db");
  auto totals = (*store)->TotalsOfEnded(std::nullopt);
  EXPECT_EQ((*totals)[wan::v1::JOB_STATE_COMPLETED].file_bytes,
            100 * (kJobs / 3 + 1 - kRemoved / 3));
}

}  // namespace
}  // namespace wan::server
