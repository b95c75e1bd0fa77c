// A strict reader of Prometheus' text format 0.0.4, for tests: what a lenient scraper lets pass is
// an error here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wan::support {

using PrometheusLabels = std::map<std::string, std::string>;

struct PrometheusSample {
  std::string name;  // with _bucket, _sum or _count
  PrometheusLabels labels;
  double value = 0;
};

struct PrometheusFamily {
  std::string name;
  std::string type;  // "counter", "gauge", "histogram", "summary", "untyped"
  std::string help;
  std::vector<PrometheusSample> samples;
};

// Families by name.
class PrometheusText {
 public:
  // INVALID_ARGUMENT "line N: ..." unless
  //   every line is a comment, HELP, TYPE or a sample with names, escapes and numbers as specified,
  //   the text ends with a line break,
  //   each family has one HELP and one TYPE, before its samples, which follow without a gap,
  //   no sample occurs twice and none has labels of other names than its family's others,
  //   counters end with _total (or _count, _sum of a summary), are finite and not negative,
  //   histograms have, for each set of labels, buckets of growing bounds and counts up to
  //   le="+Inf", a _count equal to the last and a _sum.
  static absl::StatusOr<PrometheusText> Parse(std::string_view text);

  const std::map<std::string, PrometheusFamily, std::less<>>& families() const { return families_; }

  // Null if there is no such family.
  const PrometheusFamily* Find(std::string_view family) const;

  // The sample with exactly these labels; nullopt if there is none. For histograms `name` ends with
  // _bucket, _count or _sum.
  std::optional<double> Value(std::string_view name, const PrometheusLabels& labels = {}) const;

 private:
  std::map<std::string, PrometheusFamily, std::less<>> families_;
};

}  // namespace wan::support
