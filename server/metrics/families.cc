#include "server/metrics/families.h"

#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/metrics/catalog.h"

namespace wan::server {
namespace {

template <typename Builder>
auto& Register(Builder builder, prometheus::Registry& registry, std::string_view name) {
  const MetricRow& row = RowOf(name);
  return builder.Name(std::string(row.name)).Help(std::string(row.help)).Register(registry);
}

prometheus::MetricType TypeOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricType::kHistogram:
      break;
  }
  return prometheus::MetricType::Histogram;
}

}  // namespace

prometheus::Family<prometheus::Counter>& CounterFamily(prometheus::Registry& registry,
                                                       std::string_view name) {
  return Register(prometheus::BuildCounter(), registry, name);
}

prometheus::Family<prometheus::Gauge>& GaugeFamily(prometheus::Registry& registry,
                                                   std::string_view name) {
  return Register(prometheus::BuildGauge(), registry, name);
}

prometheus::Family<prometheus::Histogram>& HistogramFamily(prometheus::Registry& registry,
                                                           std::string_view name) {
  return Register(prometheus::BuildHistogram(), registry, name);
}

ScrapedFamily::ScrapedFamily(std::string_view name) {
  const MetricRow& row = RowOf(name);
  family_.name = std::string(row.name);
  family_.help = std::string(row.help);
  family_.type = TypeOf(row.type);
}

void ScrapedFamily::Add(std::vector<prometheus::ClientMetric::Label> labels, double value) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  if (family_.type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family_.metric.push_back(std::move(metric));
}

void ScrapedFamily::MoveTo(std::vector<prometheus::MetricFamily>& families) {
  if (!family_.metric.empty()) families.push_back(std::move(family_));
}

prometheus::Histogram::BucketBoundaries GrowingBounds(double first, double last, double factor) {
  prometheus::Histogram::BucketBoundaries bounds;
  for (double bound = first;; bound *= factor) {
    bounds.push_back(std::strtod(absl::StrFormat("%.3g", bound).c_str(), nullptr));
    if (bounds.back() >= last) return bounds;
  }
}

}  // namespace wan::server
