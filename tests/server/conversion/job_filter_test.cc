#include "server/conversion/job_filter.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wan::server {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

using Kind = JobFilter::Kind;

TEST(JobFilterTest, AnEmptyFilterAcceptsEveryJob) {
  for (const char* const text : {"", "  \n"}) {
    const auto filter = ParseJobFilter(text);
    ASSERT_TRUE(filter.ok()) << filter.status();
    EXPECT_EQ(filter->kind, Kind::kAll);
  }
}

TEST(JobFilterTest, OrBindsMoreTightlyThanAnd) {
  const auto filter = ParseJobFilter("model = a AND state = QUEUED OR state = JOB_STATE_RUNNING");
  ASSERT_TRUE(filter.ok()) << filter.status();
  ASSERT_EQ(filter->kind, Kind::kAnd);
  ASSERT_THAT(filter->operands, SizeIs(2));
  EXPECT_EQ(filter->operands[0].field, JobField::kModel);
  EXPECT_EQ(filter->operands[0].text, "a");
  ASSERT_EQ(filter->operands[1].kind, Kind::kOr);
  EXPECT_EQ(filter->operands[1].operands[0].number, 1);
  EXPECT_EQ(filter->operands[1].operands[1].number, 2);
}

TEST(JobFilterTest, ConditionsSideBySideMeanAnd) {
  const auto filter = ParseJobFilter("model=a owner!='o' (priority>=-3)");
  ASSERT_TRUE(filter.ok()) << filter.status();
  ASSERT_EQ(filter->kind, Kind::kAnd);
  ASSERT_THAT(filter->operands, SizeIs(3));
  EXPECT_EQ(filter->operands[1].kind, Kind::kNot);
  EXPECT_EQ(filter->operands[1].operands[0].text, "o");
  EXPECT_EQ(filter->operands[2].op, FilterOperator::kGreaterOrEqual);
  EXPECT_EQ(filter->operands[2].number, -3);
}

TEST(JobFilterTest, LabelsByKeyAndByValue) {
  const auto filter = ParseJobFilter(R"(labels.team = "it\"s" labels."a b" = x labels:team)");
  ASSERT_TRUE(filter.ok()) << filter.status();
  EXPECT_EQ(filter->operands[0].label, "team");
  EXPECT_EQ(filter->operands[0].text, "it\"s");
  EXPECT_EQ(filter->operands[1].label, "a b");
  EXPECT_EQ(filter->operands[2].op, FilterOperator::kHas);
  EXPECT_EQ(filter->operands[2].label, "team");
}

TEST(JobFilterTest, TimesAreMicrosecondsAndModelsBareNames) {
  const auto filter = ParseJobFilter(R"(-end_time < "1970-01-01T00:00:01.5Z" model = "models/m")");
  ASSERT_TRUE(filter.ok()) << filter.status();
  EXPECT_EQ(filter->operands[0].kind, Kind::kNot);
  EXPECT_EQ(filter->operands[0].operands[0].number, 1'500'000);
  EXPECT_EQ(filter->operands[1].text, "m");
}

TEST(JobFilterTest, AnErrorNamesThePositionAndWhatWouldBeRight) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"stat = RUNNING", "at character 1 is 'stat'; must be a field: state, model"},
      {"state = RUN", "at character 9 is 'RUN'; must be QUEUED, RUNNING"},
      {"state < RUNNING", "at character 7 is '<'; must be = or != for this field"},
      {"state RUNNING", "at character 7 is 'RUNNING'; must be an operator"},
      {"state =", "at character 8 the filter ends; must be a value"},
      {"(state = RUNNING", "at character 17 the filter ends; must be ')'"},
      {"state = RUNNING)", "at character 16 is ')'; must be AND, OR or the end"},
      {"model = \"a", "at character 9 a text begins and its closing quote is missing"},
      {"priority = high", "at character 12 is 'high'; must be a whole number"},
      {"create_time > yesterday", "at character 15 is 'yesterday'; must be a time"},
      {"model ! a", "at character 7 is '!'; must be != or NOT"},
      {"AND model = a", "at character 1 is 'AND'; must be a field"},
      {"model = a OR", "at character 13 the filter ends; must be a field"},
      {"labels = a", "must be labels.KEY = VALUE or labels:KEY"},
      {"model:a", "at character 6 is ':', which is only for labels:KEY"},
      {std::string(20, '(') + "model = a", "opens more than 16 parentheses"},
  };
  for (const auto& [text, message] : cases) {
    const auto filter = ParseJobFilter(text);
    ASSERT_FALSE(filter.ok()) << text;
    const auto violations = FieldViolationsOf(filter.status());
    ASSERT_THAT(violations, SizeIs(1)) << text;
    EXPECT_EQ(violations[0].field, "filter");
    EXPECT_THAT(violations[0].description, HasSubstr(message)) << text;
  }
}

TEST(JobFilterTest, WhatIsTooLargeIsRefused) {
  EXPECT_FALSE(ParseJobFilter(std::string(4097, ' ')).ok());
  std::string many = "model = a";
  for (int i = 1; i < 64; ++i) many += " model = a";
  EXPECT_TRUE(ParseJobFilter(many).ok());
  EXPECT_FALSE(ParseJobFilter(many + " model = a").ok());
}

// Whatever comes is a filter or a violation of it.
TEST(JobFilterTest, NoTextHarms) {
  const std::vector<std::string> pieces = {"state",  "=",
                                           "!=",     "<=",
                                           ">",      ":",
                                           "(",      ")",
                                           "AND",    "OR",
                                           "NOT",    "-",
                                           "labels", ".",
                                           "\"",     "'",
                                           "\\",     "RUNNING",
                                           "1",      "labels.",
                                           "\xff",   std::string(1, '\0'),
                                           " ",      "!"};
  std::minstd_rand random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (size_t i = random() % 12; i > 0; --i) text += pieces[random() % pieces.size()];
    const auto filter = ParseJobFilter(text);
    if (filter.ok()) continue;
    ASSERT_THAT(FieldViolationsOf(filter.status()), SizeIs(1)) << text;
  }
}

TEST(JobOrderTest, FieldsAndDirections) {
  EXPECT_TRUE(ParseJobOrder("")->descending);
  EXPECT_FALSE(ParseJobOrder("create_time")->descending);
  EXPECT_FALSE(ParseJobOrder("end_time asc")->descending);
  EXPECT_EQ(ParseJobOrder("priority  desc")->field, JobOrderField::kPriority);
  EXPECT_TRUE(ParseJobOrder("priority  desc")->descending);
  for (const char* const text : {"name", "priority down", "priority desc, end_time", "desc"}) {
    const auto order = ParseJobOrder(text);
    ASSERT_FALSE(order.ok()) << text;
    EXPECT_EQ(FieldViolationsOf(order.status()).at(0).field, "order_by");
  }
}

}  // namespace
}  // namespace wan::server
