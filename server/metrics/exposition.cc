#include "server/metrics/exposition.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <new>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "server/metrics/catalog.h"

namespace wan::server {
namespace {

constexpr std::string_view kTotal = "_total";
constexpr std::string_view kOpenMetricsVersion = "1.0.0";

// One part of the header Accept or Accept-Encoding: "application/openmetrics-text; version=1.0.0;
// q=0.5".
struct Choice {
  std::string name;  // the name before the first ';', in lower case
  std::string version;
  double quality = 1;
};

std::vector<Choice> ChoicesOf(std::string_view header) {
  std::vector<Choice> choices;
  const std::string text(header);
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<std::string> fields = absl::StrSplit(part, ';');
    Choice choice;
    choice.name = absl::AsciiStrToLower(absl::StripAsciiWhitespace(fields[0]));
    for (size_t i = 1; i < fields.size(); ++i) {
      const std::string field = absl::AsciiStrToLower(absl::StripAsciiWhitespace(fields[i]));
      if (field.starts_with("version=")) {
        choice.version = absl::StrReplaceAll(field.substr(field.find('=') + 1), {{"\"", ""}});
      } else if (field.starts_with("q=") && !absl::SimpleAtod(field.substr(2), &choice.quality)) {
        choice.quality = 0;
      }
    }
    choices.push_back(std::move(choice));
  }
  return choices;
}

// Returns "NaN", "+Inf" or "-Inf"; empty for other numbers.
std::string_view NotFinite(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return "";
}

// Writes the number with the fewest characters that are parsed to the same number.
std::string Number(double value) {
  if (const std::string_view word = NotFinite(value); !word.empty()) return std::string(word);
  char text[32];
  return {text, std::to_chars(std::begin(text), std::end(text), value).ptr};
}

// Writes a bound as OpenMetrics and Prometheus 3 do: like %g of C, but "1.0" instead of "1".
std::string Bound(double value) {
  if (const std::string_view word = NotFinite(value); !word.empty()) return std::string(word);
  char digits[32];
  std::string text(
      digits,
      std::to_chars(std::begin(digits), std::end(digits), value, std::chars_format::general).ptr);
  if (text.find_first_not_of("0123456789-") == std::string::npos) text += ".0";
  return text;
}

// `quotes` says whether to escape quotes as well.
void AppendEscaped(std::string_view text, bool quotes, std::string* out) {
  for (const char c : text) {
    if (c == '\\') {
      *out += "\\\\";
    } else if (c == '\n') {
      *out += "\\n";
    } else if (c == '"' && quotes) {
      *out += "\\\"";
    } else {
      *out += c;
    }
  }
}

class Writer {
 public:
  Writer(MetricFormat format, const ExemplarTable& exemplars)
      : open_metrics_(format == MetricFormat::kOpenMetrics), exemplars_(exemplars) {}

  void Add(const prometheus::MetricFamily& family) {
    AddHead(family);
    const auto exemplars = exemplars_.find(family.name);
    for (const prometheus::ClientMetric& metric : family.metric) {
      switch (TypeOf(family)) {
        case MetricType::kCounter:
          AddSample(family.name, "", metric, metric.counter.value);
          break;
        case MetricType::kGauge:
          AddSample(family.name, "", metric, metric.gauge.value);
          break;
        case MetricType::kHistogram:
          AddHistogram(family.name, metric,
                       exemplars == exemplars_.end() ? nullptr : &exemplars->second);
      }
    }
  }

  std::string Finish() && {
    if (open_metrics_) text_ += "# EOF\n";
    return std::move(text_);
  }

 private:
  using SeriesExemplars = std::map<prometheus::Labels, BucketExemplars>;

  static MetricType TypeOf(const prometheus::MetricFamily& family) {
    switch (family.type) {
      case prometheus::MetricType::Counter:
        return MetricType::kCounter;
      case prometheus::MetricType::Histogram:
        return MetricType::kHistogram;
      default:  // the catalog has no other types
        return MetricType::kGauge;
    }
  }

  void AddHead(const prometheus::MetricFamily& family) {
    // In OpenMetrics the name of a counter's family lacks the suffix that its samples have.
    std::string name = family.name;
    if (open_metrics_ && family.type == prometheus::MetricType::Counter && name.ends_with(kTotal)) {
      name.resize(name.size() - kTotal.size());
    }
    absl::StrAppend(&text_, "# HELP ", name, " ");
    AppendEscaped(family.help, open_metrics_, &text_);
    absl::StrAppend(&text_, "\n# TYPE ", name, " ", std::string(NameOf(TypeOf(family))), "\n");
    if (!open_metrics_) return;
    // OpenMetrics allows a unit only if the name ends with it.
    const MetricRow* const row = FindRow(family.name);
    if (row == nullptr || row->unit.empty()) return;
    const std::string unit(row->unit);
    if (name.ends_with("_" + unit)) absl::StrAppend(&text_, "# UNIT ", name, " ", unit, "\n");
  }

  void AddHistogram(const std::string& name, const prometheus::ClientMetric& metric,
                    const SeriesExemplars* family_exemplars) {
    const BucketExemplars* exemplars = nullptr;
    if (open_metrics_ && family_exemplars != nullptr) {
      prometheus::Labels labels;
      for (const auto& label : metric.label) labels[label.name] = label.value;
      const auto found = family_exemplars->find(labels);
      if (found != family_exemplars->end()) exemplars = &found->second;
    }
    const auto& buckets = metric.histogram.bucket;
    for (size_t i = 0; i < buckets.size(); ++i) {
      const std::string bound = Bound(buckets[i].upper_bound);
      AddSample(name, "_bucket", metric, static_cast<double>(buckets[i].cumulative_count), &bound,
                exemplars != nullptr && (*exemplars)[i].has_value() ? &*(*exemplars)[i] : nullptr);
    }
    AddSample(name, "_count", metric, static_cast<double>(metric.histogram.sample_count));
    AddSample(name, "_sum", metric, metric.histogram.sample_sum);
  }

  void AddSample(const std::string& name, const char* suffix,
                 const prometheus::ClientMetric& metric, double value,
                 const std::string* bound = nullptr, const Exemplar* exemplar = nullptr) {
    absl::StrAppend(&text_, name, suffix);
    char before = '{';
    const auto add_label = [&](std::string_view label, std::string_view label_value) {
      text_ += std::exchange(before, ',');
      text_.append(label).append("=\"");
      AppendEscaped(label_value, true, &text_);
      text_ += '"';
    };
    for (const auto& label : metric.label) add_label(label.name, label.value);
    if (bound != nullptr) add_label("le", *bound);
    absl::StrAppend(&text_, before == ',' ? "} " : " ", Number(value));
    if (exemplar != nullptr) AddExemplar(*exemplar);
    text_ += '\n';
  }

  void AddExemplar(const Exemplar& exemplar) {
    text_ += " # {job=\"";
    AppendEscaped(exemplar.job, true, &text_);
    if (!exemplar.trace_id.empty()) {
      text_ += "\",trace_id=\"";
      AppendEscaped(exemplar.trace_id, true, &text_);
    }
    absl::StrAppend(
        &text_, "\"} ", Number(exemplar.value),
        absl::StrFormat(" %.3f", absl::ToDoubleSeconds(exemplar.time - absl::UnixEpoch())));
  }

  const bool open_metrics_;
  const ExemplarTable& exemplars_;
  std::string text_;
};

}  // namespace

std::string_view ContentTypeOf(MetricFormat format) {
  return format == MetricFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

MetricFormat ChooseFormat(std::string_view accept) {
  double open_metrics = 0;
  double text = 0;
  for (const Choice& choice : ChoicesOf(accept)) {
    if (choice.name == "application/openmetrics-text") {
      if (choice.version.empty() || choice.version == kOpenMetricsVersion) {
        open_metrics = std::max(open_metrics, choice.quality);
      }
    } else if (choice.name == "text/plain") {
      text = std::max(text, choice.quality);
    }
  }
  return open_metrics > 0 && open_metrics >= text ? MetricFormat::kOpenMetrics
                                                  : MetricFormat::kText;
}

bool TakesGzip(std::string_view accept_encoding) {
  bool any = false;
  for (const Choice& choice : ChoicesOf(accept_encoding)) {
    if (choice.name == "gzip") return choice.quality > 0;
    if (choice.name == "*") any = choice.quality > 0;
  }
  return any;
}

std::string WriteMetrics(const Scrape& scrape, MetricFormat format) {
  Writer writer(format, scrape.exemplars);
  for (const prometheus::MetricFamily& family : scrape.families) writer.Add(family);
  return std::move(writer).Finish();
}

std::string Gzip(std::string_view text) {
  // The 16 selects gzip's header and checksum instead of zlib's.
  constexpr int kGzipWindow = 15 + 16;
  constexpr int kMemoryLevel = 8;
  z_stream stream{};
  // The only possible error is lack of memory, so throw like any failed allocation.
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string packed(deflateBound(&stream, text.size()), '\0');
  // The cast is safe, because zlib does not write to its input.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace wan::server
