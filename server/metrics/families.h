// Makes prometheus-cpp's families from the rows of the catalog, and the bounds of histograms.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <string_view>
#include <vector>

namespace wan::server {

// The functions that take a name abort if the catalog lacks the name. The registry must outlive the
// results.
prometheus::Family<prometheus::Counter>& CounterFamily(prometheus::Registry& registry,
                                                       std::string_view name);
prometheus::Family<prometheus::Gauge>& GaugeFamily(prometheus::Registry& registry,
                                                   std::string_view name);
prometheus::Family<prometheus::Histogram>& HistogramFamily(prometheus::Registry& registry,
                                                           std::string_view name);

// Builds a family whose values are read when it is scraped.
class ScrapedFamily {
 public:
  explicit ScrapedFamily(std::string_view name);

  void Add(std::vector<prometheus::ClientMetric::Label> labels, double value);

  // Appends the family to `families`, unless it has no sample.
  void MoveTo(std::vector<prometheus::MetricFamily>& families);

 private:
  prometheus::MetricFamily family_;
};

// Returns the bounds of a histogram, from `first` to at least `last`; each is about `factor` times
// the one before, rounded to three digits.
prometheus::Histogram::BucketBoundaries GrowingBounds(double first, double last, double factor);

}  // namespace wan::server
