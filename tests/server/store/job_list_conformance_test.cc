// What every JobStore finds by filters and orders, compared with a plain look at every job.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/job_store.h"
#include "tests/server/store/job_store_conformance.h"

namespace wan::server {
namespace {

using testing::ElementsAre;

// What a filter means, said once more, without SQL.
bool Matches(const JobFilter& filter, const wan::v1::Job& job) {
  const auto accepts = [&](const JobFilter& operand) { return Matches(operand, job); };
  const auto compares = [&](auto left, auto right) {
    switch (filter.op) {
      case FilterOperator::kLess:
        return left < right;
      case FilterOperator::kLessOrEqual:
        return left <= right;
      case FilterOperator::kGreater:
        return left > right;
      case FilterOperator::kGreaterOrEqual:
        return left >= right;
      default:
        return left == right;
    }
  };
  switch (filter.kind) {
    case JobFilter::Kind::kAll:
      return true;
    case JobFilter::Kind::kAnd:
      return std::all_of(filter.operands.begin(), filter.operands.end(), accepts);
    case JobFilter::Kind::kOr:
      return std::any_of(filter.operands.begin(), filter.operands.end(), accepts);
    case JobFilter::Kind::kNot:
      return !accepts(filter.operands.front());
    case JobFilter::Kind::kCompare:
      break;
  }
  switch (filter.field) {
    case JobField::kState:
      return compares(static_cast<int64_t>(job.state()), filter.number);
    case JobField::kModel:
      return compares(job.request().model(), filter.text);
    case JobField::kOwner:
      return compares(job.owner(), filter.text);
    case JobField::kPriority:
      return compares(static_cast<int64_t>(job.request().priority()), filter.number);
    case JobField::kCreateTime:
      return compares(job.create_time().seconds() * 1'000'000, filter.number);
    case JobField::kEndTime:
      return job.has_end_time() && compares(job.end_time().seconds() * 1'000'000, filter.number);
    case JobField::kLabel: {
      const auto label = job.request().labels().find(filter.label);
      return label != job.request().labels().end() &&
             (filter.op == FilterOperator::kHas || label->second == filter.text);
    }
  }
  return false;
}

class JobListTest : public JobStoreTest {
 protected:
  // `count` jobs that differ in everything that a filter or an order looks at.
  void InsertMany(int count) {
    for (int i = 0; i < count; ++i) {
      StoredJob stored = NewJob(absl::StrCat("jobs/", i));
      wan::v1::Job& job = stored.job;
      job.mutable_request()->set_model(absl::StrCat("m", random_() % 3));
      job.mutable_request()->set_priority(static_cast<int>(random_() % 5) - 2);
      job.set_owner(random_() % 2 == 0 ? "ann" : "bob");
      job.mutable_create_time()->set_seconds(1'800'000'000 + i / 3);
      if (random_() % 2 == 0) (*job.mutable_request()->mutable_labels())["team"] = "video";
      if (random_() % 3 == 0) (*job.mutable_request()->mutable_labels())["a b"] = "it's";
      ASSERT_TRUE(Insert(stored).ok());
      job.set_state(static_cast<wan::v1::JobState>(1 + random_() % 5));
      if (IsFinal(job.state())) {
        job.mutable_end_time()->set_seconds(1'800'000'000 + static_cast<int>(random_() % 40));
      }
      ASSERT_TRUE(Apply(NewState(stored, job.state())).ok());
      jobs_.push_back(job);
    }
  }

  std::string AnyComparison() {
    const std::vector<std::string> comparisons = {"state = RUNNING",
                                                  "state != COMPLETED",
                                                  "model = m1",
                                                  "owner = 'ann'",
                                                  "priority >= 1",
                                                  "priority < -1",
                                                  "create_time > \"2027-01-15T08:00:20Z\"",
                                                  "end_time <= \"2027-01-15T08:00:20Z\"",
                                                  "end_time != \"2027-01-15T08:00:05Z\"",
                                                  "labels.team = video",
                                                  "labels:team",
                                                  "labels.\"a b\" = \"it's\"",
                                                  "labels.nobody = x"};
    return comparisons[random_() % comparisons.size()];
  }

  std::string AnyFilter(int depth) {
    std::string filter;
    const auto terms = 1 + random_() % 3;
    for (size_t i = 0; i < terms; ++i) {
      if (i > 0) filter += random_() % 3 == 0 ? " " : random_() % 2 == 0 ? " AND " : " OR ";
      if (random_() % 4 == 0) filter += random_() % 2 == 0 ? "NOT " : "-";
      filter += depth > 0 && random_() % 3 == 0 ? absl::StrCat("(", AnyFilter(depth - 1), ")")
                                                : AnyComparison();
    }
    return filter;
  }

  // All pages of a query.
  std::vector<std::string> ListAll(JobQuery query) {
    std::vector<std::string> names;
    do {
      const auto page = store_->List(query);
      EXPECT_TRUE(page.ok()) << page.status();
      EXPECT_LE(page->jobs.size(), static_cast<size_t>(query.limit));
      for (const std::string& name : Names(*page)) names.push_back(name);
      query.after = page->next;
    } while (query.after.has_value());
    return names;
  }

  std::minstd_rand random_{1};
  std::vector<wan::v1::Job> jobs_;
};

TEST_P(JobListTest, FiltersMeanWhatTheySay) {
  InsertMany(120);
  for (int round = 0; round < 300; ++round) {
    const std::string text = AnyFilter(3);
    const auto filter = ParseJobFilter(text);
    ASSERT_TRUE(filter.ok()) << text << ": " << filter.status();
    std::vector<std::string> wanted;
    for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job) {
      if (Matches(*filter, *job)) wanted.push_back(job->name());
    }
    JobQuery query;
    query.filter = *filter;
    query.limit = 1 + static_cast<int>(random_() % 50);
    ASSERT_EQ(ListAll(query), wanted) << text;
  }
}

TEST_P(JobListTest, OrdersHoldAcrossPages) {
  InsertMany(60);
  for (const char* const text : {"create_time", "create_time desc", "end_time", "end_time desc",
                                 "priority asc", "priority desc"}) {
    const auto order = ParseJobOrder(text);
    ASSERT_TRUE(order.ok()) << order.status();
    std::vector<wan::v1::Job> sorted = jobs_;
    if (order->descending) std::reverse(sorted.begin(), sorted.end());
    const auto key = [&](const wan::v1::Job& job) -> int64_t {
      if (order->field == JobOrderField::kPriority) return job.request().priority();
      if (order->field == JobOrderField::kCreateTime) return 0;
      return job.has_end_time() ? job.end_time().seconds() : std::numeric_limits<int64_t>::max();
    };
    std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& left, const auto& right) {
      return order->descending ? key(left) > key(right) : key(left) < key(right);
    });
    std::vector<std::string> wanted;
    for (const wan::v1::Job& job : sorted) wanted.push_back(job.name());
    JobQuery query;
    query.order = *order;
    query.limit = 7;
    EXPECT_EQ(ListAll(query), wanted) << text;
  }
}

TEST_P(JobListTest, ARareJobIsFoundBehindManyOthers) {
  StoredJob rare = NewJob("jobs/rare");
  (*rare.job.mutable_request()->mutable_labels())["only"] = "this";
  ASSERT_TRUE(Insert(rare).ok());
  std::vector<JobAddition> many;
  for (int i = 0; i < 3000; ++i) {
    many.push_back({NewJob(absl::StrCat("jobs/", i)), {}, {NewEvent(1)}});
  }
  ASSERT_TRUE(InsertAllInto(*store_, many).ok());
  JobQuery query;
  query.filter = *ParseJobFilter("labels.only = this");
  EXPECT_THAT(ListAll(query), ElementsAre("jobs/rare"));
}

INSTANTIATE_TEST_SUITE_P(All, JobListTest, JobStores(), NameOfJobStore);

}  // namespace
}  // namespace wan::server
