// Makes the families of prometheus-cpp from the rows of the catalog, and the bounds of histograms.
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

// These functions end the process for a name that the catalog lacks. The registry must outlive what
// they return.
prometheus::Family<prometheus::Counter>& CounterFamily(prometheus::Registry& registry,
                                                       std::string_view name);
prometheus::Family<prometheus::Gauge>& GaugeFamily(prometheus::Registry& registry,
                                                   std::string_view name);
prometheus::Family<prometheus::Histogram>& HistogramFamily(prometheus::Registry& registry,
                                                           std::string_view name);

// Builds one family whose values are read at the moment of a scrape.
class ScrapedFamily {
 public:
  explicit ScrapedFamily(std::string_view name);

  void Add(std::vector<prometheus::ClientMetric::Label> labels, double value);

  // Appends the family to `families`, unless it has no sample.
  void MoveTo(std::vector<prometheus::MetricFamily>& families);

 private:
  prometheus::MetricFamily family_;
};

// Bounds of a histogram from `first` to at least `last`, each about `factor` times the one before,
// rounded to three digits.
prometheus::Histogram::BucketBoundaries GrowingBounds(double first, double last, double factor);

}  // namespace wan::server
