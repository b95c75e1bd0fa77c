#include "tests/support/prometheus_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wan::support {
namespace {

using ::testing::HasSubstr;

constexpr char kGood[] = R"(# HELP up_total Things.
# TYPE up_total counter
up_total{a="x",b="q\"\\\n,}"} 3
up_total{a="y",b=""} 0
# a comment

# HELP heat Degrees.
# TYPE heat gauge
heat -1.5e+01
# HELP t_seconds Seconds.
# TYPE t_seconds histogram
t_seconds_count{s="a"} 3
t_seconds_sum{s="a"} 4.5
t_seconds_bucket{s="a",le="0.1"} 1
t_seconds_bucket{s="a",le="+Inf"} 3
)";

TEST(PrometheusTextTest, ReadsWhatIsRight) {
  const auto text = PrometheusText::Parse(kGood);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->families().size(), 3u);
  EXPECT_EQ(text->Value("up_total", {{"a", "x"}, {"b", "q\"\\\n,}"}}), 3);
  EXPECT_EQ(text->Value("up_total", {{"a", "x"}}), std::nullopt);
  EXPECT_EQ(text->Value("heat"), -15);
  EXPECT_EQ(text->Value("t_seconds_bucket", {{"s", "a"}, {"le", "0.1"}}), 1);
  ASSERT_NE(text->Find("t_seconds"), nullptr);
  EXPECT_EQ(text->Find("t_seconds")->type, "histogram");
  EXPECT_EQ(text->Find("t_seconds")->help, "Seconds.");
  EXPECT_EQ(text->Find("t_seconds_sum"), nullptr);
}

TEST(PrometheusTextTest, RefusesWhatIsWrong) {
  const std::string gauge = "# HELP g G.\n# TYPE g gauge\n";
  const std::string histogram = "# HELP h H.\n# TYPE h histogram\n";
  const struct {
    std::string text, error;
  } cases[] = {
      {gauge + "g 1", "the last line has no line break"},
      {"g 1\n", "does not follow the TYPE"},
      {"# TYPE g gauge\ng 1\n", "TYPE does not follow its HELP"},
      {"# HELP g G.\ng 1\n", "does not follow the TYPE"},
      {"# HELP g \n# TYPE g gauge\ng 1\n", "HELP without a text"},
      {"# HELP g G.\n# TYPE g meter\ng 1\n", "an unknown type"},
      {gauge + "# TYPE g gauge\ng 1\n", "a second TYPE"},
      {gauge + "g 1\n" + gauge + "g{a=\"b\"} 1\n", "line 4: a family begins twice"},
      {gauge + "g 1\n# HELP x X.\n# TYPE x gauge\nx 1\ng{a=\"b\"} 1\n", "does not follow the TYPE"},
      {gauge, "has no samples"},
      {gauge + "g 1\ng 1\n", "line 4: a sample occurs twice"},
      {gauge + "g{a=\"x\"} 1\ng{b=\"x\"} 1\n", "different label names"},
      {gauge + "g{a=\"x\",a=\"y\"} 1\n", "a label occurs twice"},
      {gauge + "g{a=\"x\"b=\"y\"} 1\n", "no comma between labels"},
      {gauge + "g{a=\"x} 1\n", "a label's value has no end"},
      {gauge + "g{a=\"\\t\"} 1\n", "wrong escape"},
      {gauge + "g{a=x} 1\n", "a label without name or quote"},
      {gauge + "g{1a=\"x\"} 1\n", "a label without name or quote"},
      {gauge + "g one\n", "no number: one"},
      {gauge + "g 1x\n", "no number: 1x"},
      {gauge + "g  1\n", "a timestamp"},
      {gauge + "g 1 1700000000\n", "a timestamp"},
      {gauge + "g\n", "no blank before the value"},
      {gauge + "9g 1\n", "neither a comment nor a sample"},
      {"# HELP c C.\n# TYPE c counter\nc 1\n", "does not end with _total"},
      {"# HELP c_total C.\n# TYPE c_total counter\nc_total -1\n", "negative or not finite"},
      {histogram + "h_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n", "no bucket up to +Inf"},
      {histogram + "h_bucket{le=\"+Inf\"} 1\nh_count 1\n", "no _count or no _sum"},
      {histogram + "h_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 2\n", "not its last bucket"},
      {histogram + "h_bucket{le=\"2\"} 1\nh_bucket{le=\"1\"} 1\n", "bounds that do not grow"},
      {histogram + "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\n", "counts that fall"},
      {histogram + "h_bucket 1\n", "a bucket without le"},
      {histogram + "h_bucket{le=\"x\"} 1\n", "whose le is no number"},
      {histogram + "h 1\n", "does not follow the TYPE"},
  };
  for (const auto& c : cases) {
    const auto text = PrometheusText::Parse(c.text);
    ASSERT_FALSE(text.ok()) << c.text;
    EXPECT_THAT(std::string(text.status().message()), HasSubstr(c.error)) << c.text;
  }
}

}  // namespace
}  // namespace wan::support
