// Writes metrics in the two text formats of Prometheus, and chooses between them and gzip as a
// scraper asks. Bounds are written "1.0" in both formats, because a scraper that changes the format
// would otherwise begin new series. That is why prometheus-cpp's serializer, which writes "1", is
// not used.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <string_view>
#include <vector>

#include "server/metrics/exemplars.h"

namespace wan::server {

// The values of one scrape.
struct Scrape {
  std::vector<prometheus::MetricFamily> families;  // counters, gauges and histograms
  ExemplarTable exemplars;
};

class ScrapeSource {
 public:
  virtual ~ScrapeSource() = default;
  // Called once for all waiting scrapes, by one thread at a time.
  virtual Scrape Collect() const = 0;
};

enum class MetricFormat {
  kText,         // version 0.0.4
  kOpenMetrics,  // version 1.0.0
};

// The value of the header Content-Type.
std::string_view ContentTypeOf(MetricFormat format);

// Returns the format for a request with this Accept header (empty: none): OpenMetrics only if the
// header names it, without a version or with the one written here, and prefers it to plain text.
// Browsers and curl get plain text.
MetricFormat ChooseFormat(std::string_view accept);

// Whether the Accept-Encoding header (empty: none) accepts gzip.
bool TakesGzip(std::string_view accept_encoding);

std::string WriteMetrics(const Scrape& scrape, MetricFormat format);

// Compresses the text with gzip. Level 1 makes 16 kB of 188 kB in 0.4 ms, level 6 14 kB in 1.1 ms.
std::string Gzip(std::string_view text);

}  // namespace wan::server
