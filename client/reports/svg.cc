#include "client/reports/svg.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/reports/document.h"

namespace wan::client::reports {

const char* const kChartStyle = R"(
svg.chart{--ink:#1c2430;--dim:#5d6878;--grid:#dde2e9;--paper:#ffffff;
--c0:#2f6fb3;--c1:#d9822b;--c2:#2e8b57;--c3:#8a5fb5;--c4:#c23b4b;--c5:#6b7787;--c6:#b8952b;--c7:#2b9aa6;
font:12px system-ui,"Segoe UI","DejaVu Sans",sans-serif;display:block;width:100%;height:auto}
@media (prefers-color-scheme:dark){svg.chart{--ink:#e4e9f0;--dim:#9aa6b6;--grid:#333d4a;--paper:#161b22;
--c0:#6aa9ec;--c1:#f0a04b;--c2:#58c48a;--c3:#b793e6;--c4:#f0707f;--c5:#94a1b2;--c6:#dcc05a;--c7:#55c3cf}}
@media print{svg.chart{--ink:#000;--dim:#444;--grid:#ccc;--paper:#fff;
--c0:#2f6fb3;--c1:#d9822b;--c2:#2e8b57;--c3:#8a5fb5;--c4:#c23b4b;--c5:#6b7787;--c6:#b8952b;--c7:#2b9aa6}}
svg.chart text{fill:var(--ink)}svg.chart text.dim{fill:var(--dim)}
svg.chart line.grid{stroke:var(--grid);stroke-width:1}svg.chart line.axis{stroke:var(--dim);stroke-width:1}
svg.chart line.mark{stroke:var(--c4);stroke-width:1.5;stroke-dasharray:5 3}svg.chart text.mark{fill:var(--c4)}
svg.chart .roof{stroke:var(--ink);stroke-width:2;fill:none}svg.chart .leader{stroke:var(--dim);stroke-width:.7}
svg.chart .f0{fill:var(--c0)}svg.chart .f1{fill:var(--c1)}svg.chart .f2{fill:var(--c2)}svg.chart .f3{fill:var(--c3)}
svg.chart .f4{fill:var(--c4)}svg.chart .f5{fill:var(--c5)}svg.chart .f6{fill:var(--c6)}svg.chart .f7{fill:var(--c7)}
svg.chart .s0{stroke:var(--c0)}svg.chart .s1{stroke:var(--c1)}svg.chart .s2{stroke:var(--c2)}
svg.chart .s3{stroke:var(--c3)}svg.chart .s4{stroke:var(--c4)}svg.chart .s5{stroke:var(--c5)}
svg.chart .s6{stroke:var(--c6)}svg.chart .s7{stroke:var(--c7)}
svg.chart .area{fill-opacity:.22}svg.chart .line{fill:none;stroke-width:1.6;stroke-linejoin:round}
)";

std::string EscapeMarkup(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return escaped;
}

namespace {

constexpr double kWidth = 960;
constexpr double kRight = 24;
constexpr int kColours = 8;

// The content of an <svg> element, with its height.
struct Drawing {
  std::string body;
  double height = 0;
};

std::string At(double value) { return absl::StrFormat("%.1f", value); }

// Returns the value in few characters: "0.05", "12", "1.5k".
std::string Short(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 1e4 || size < 1e-3) return absl::StrFormat("%.3g", value);
  return absl::StrFormat("%.4g", value);
}

// Returns round values from 0 to at least `top`.
std::vector<double> Ticks(double top, int wanted) {
  if (!(top > 0)) top = 1;
  const double rough = top / wanted;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * power;
    if (step >= rough * 0.999) break;
  }
  std::vector<double> ticks;
  for (int i = 0; i * step < top + step * 0.999; ++i) ticks.push_back(i * step);
  return ticks;
}

std::string Line(double x1, double y1, double x2, double y2, const char* name) {
  return absl::StrCat("<line class=\"", name, "\" x1=\"", At(x1), "\" y1=\"", At(y1), "\" x2=\"",
                      At(x2), "\" y2=\"", At(y2), "\"/>\n");
}

// `anchor` says which point of the text is at `x`: start, middle or end.
std::string Text(double x, double y, const std::string& text, const char* anchor,
                 const char* name = "") {
  return absl::StrCat("<text class=\"", name, "\" x=\"", At(x), "\" y=\"", At(y),
                      "\" text-anchor=\"", anchor, "\">", EscapeMarkup(text), "</text>\n");
}

std::string Box(double x, double y, double width, double height, int colour,
                const std::string& title) {
  return absl::StrCat("<rect class=\"f", colour % kColours, "\" x=\"", At(x), "\" y=\"", At(y),
                      "\" width=\"", At(std::max(width, 0.8)), "\" height=\"", At(height),
                      "\" rx=\"1.5\"><title>", EscapeMarkup(title), "</title></rect>\n");
}

// Takes the middle out of a text so that it fits the width; a character is about seven units wide.
// The end of the text stays, because names of runs differ at their ends.
std::string Fitted(const std::string& text, double width) {
  const size_t most = static_cast<size_t>(std::max(4.0, width / 7));
  if (text.size() <= most) return text;
  const auto within = [&text](size_t at) { return (text[at] & 0xC0) == 0x80; };
  size_t last = text.size() - most / 3;
  while (last < text.size() && within(last)) ++last;
  size_t end = most - 1 - most / 3;
  while (end > 0 && within(end)) --end;
  return absl::StrCat(text.substr(0, end), "…", text.substr(last));
}

// Draws a row of names with their colours. Returns the height of the row.
double Legend(Drawing& drawing, double left, const std::vector<std::string>& names) {
  double x = left, y = drawing.height + 12;
  for (size_t i = 0; i < names.size(); ++i) {
    const double width = 26 + 6.8 * static_cast<double>(names[i].size());
    if (x + width > kWidth - kRight && x > left) {
      x = left;
      y += 18;
    }
    drawing.body += Box(x, y - 9, 11, 11, static_cast<int>(i), names[i]);
    drawing.body += Text(x + 16, y, names[i], "start");
    x += width;
  }
  return y + 12;
}

// The left edge of a timeline's plot, and the height of a series in it.
constexpr double kTimelineLeft = 200, kStrip = 62;

// Draws a series below what has been drawn so far. `x` maps a time to its position; `end` is the
// time at which the series ends.
template <typename Place>
void AddStrip(Drawing& drawing, const TimelineChart::Series& series, const Place& x, double end,
              int colour) {
  const double base = drawing.height + kStrip;
  double top = series.top;
  for (const Point& point : series.points) top = std::max(top, point.y);
  if (!(top > 0)) top = 1;
  const auto y = [&](double value) {
    return base - std::clamp(value / top, 0.0, 1.0) * (kStrip - 6);
  };
  drawing.body += Line(kTimelineLeft, base, kWidth - kRight, base, "axis");
  drawing.body += Text(kTimelineLeft - 8, base - kStrip / 2 + 8,
                       Fitted(series.name, kTimelineLeft - 40), "end");
  drawing.body += Text(kTimelineLeft - 8, base - kStrip + 14, Short(top), "end", "dim");
  std::string line;
  for (size_t i = 0; i < series.points.size(); ++i) {
    const double until = i + 1 < series.points.size() ? series.points[i + 1].x : end;
    absl::StrAppend(&line, i == 0 ? "M" : "L", At(x(series.points[i].x)), " ",
                    At(y(series.points[i].y)), "H", At(x(until)));
  }
  if (!line.empty()) {
    absl::StrAppend(&drawing.body, "<path class=\"area f", colour, "\" d=\"", line, "V", At(base),
                    "H", At(x(series.points.front().x)), "Z\"/>\n<path class=\"line s", colour,
                    "\" d=\"", line, "\"/>\n");
  }
  drawing.height = base;
}

Drawing Draw(const TimelineChart& chart) {
  constexpr double kRow = 20, kGap = 12;
  Drawing drawing{"", 6};
  double end = 0;
  std::vector<std::string> groups;
  for (const TimelineChart::Bar& bar : chart.bars) {
    end = std::max(end, bar.end);
    if (std::find(groups.begin(), groups.end(), bar.group) == groups.end()) {
      groups.push_back(bar.group);
    }
  }
  for (const TimelineChart::Series& series : chart.series) {
    if (!series.points.empty()) end = std::max(end, series.points.back().x);
  }
  const std::vector<double> ticks = Ticks(end, 8);
  // End the axis where the work ends, not at the next round value.
  const double span = end > 0 ? end : 1;
  const auto x = [&](double seconds) {
    return kTimelineLeft + std::clamp(seconds / span, 0.0, 1.0) * (kWidth - kTimelineLeft - kRight);
  };
  const double bottom = drawing.height + kRow * static_cast<double>(groups.size()) +
                        (kStrip + kGap) * static_cast<double>(chart.series.size()) + 4;
  for (const double tick : ticks) {
    if (tick > span * 1.0001) continue;
    drawing.body += Line(x(tick), drawing.height, x(tick), bottom, "grid");
    drawing.body += Text(x(tick), bottom + 15, Short(tick), "middle", "dim");
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    drawing.body +=
        Text(kTimelineLeft - 8, drawing.height + 14, Fitted(groups[i], kTimelineLeft - 14), "end");
    for (const TimelineChart::Bar& bar : chart.bars) {
      if (bar.group != groups[i]) continue;
      // Leave a gap between neighbours that are wide enough.
      const double width = x(bar.end) - x(bar.start);
      drawing.body +=
          Box(x(bar.start), drawing.height + 3, width > 4 ? width - 1 : width, kRow - 6,
              static_cast<int>(i),
              absl::StrFormat("%s: %.3f s, from %.3f s", bar.name, bar.end - bar.start, bar.start));
    }
    drawing.height += kRow;
  }
  int colour = 0;
  for (const TimelineChart::Series& series : chart.series) {
    drawing.height += kGap;
    AddStrip(drawing, series, x, end, colour);
    colour = (colour + 1) % kColours;
  }
  drawing.body +=
      Text(kWidth - kRight, bottom + 31, "seconds since the start of the job", "end", "dim");
  drawing.height = bottom + 38;
  return drawing;
}

// Draws the marks as lines from above `head` down to `base`. Labels that would overlap are drawn in
// two rows.
std::string Marks(const SequenceChart& chart, double begin, double pitch, double head,
                  double base) {
  std::string marks;
  double free_from = begin;
  bool raised = false;
  for (const SequenceChart::Mark& mark : chart.marks) {
    const double x = begin + (mark.item + (chart.lines ? 0.5 : 0)) * pitch;
    marks += Line(x, head - 16, x, base, "mark");
    const double width = 6.6 * static_cast<double>(mark.text.size());
    raised = x < free_from && !raised;
    const bool left = x + 5 + width > kWidth - kRight;
    marks += Text(left ? x - 5 : x + 5, head - (raised ? 20 : 7), mark.text, left ? "end" : "start",
                  "mark");
    free_from = x + 10 + width;
  }
  return marks;
}

Drawing Draw(const SequenceChart& chart) {
  constexpr double kLeft = 64, kPlot = 230;
  Drawing drawing{"", 0};
  if (chart.runs.size() > 1) {
    std::vector<std::string> names;
    for (const SequenceChart::Run& run : chart.runs) names.push_back(run.name);
    drawing.height = Legend(drawing, kLeft, names);
  }
  double top = 0;
  size_t count = 1;
  for (const SequenceChart::Run& run : chart.runs) {
    count = std::max(count, run.values.size());
    for (const double value : run.values) top = std::max(top, value - chart.bottom);
  }
  // Leave space for the labels of the marks.
  const double head = drawing.height + (chart.marks.empty() ? 10 : 30);
  const double base = head + kPlot;
  const std::vector<double> ticks = Ticks(top, 5);
  const double scale = kPlot / ticks.back();
  const double pitch = (kWidth - kLeft - kRight) / static_cast<double>(count);
  for (const double tick : ticks) {
    drawing.body += Line(kLeft, base - tick * scale, kWidth - kRight, base - tick * scale, "grid");
    drawing.body +=
        Text(kLeft - 8, base - tick * scale + 4, Short(chart.bottom + tick), "end", "dim");
  }
  const int stride = std::max(1, static_cast<int>(std::ceil(static_cast<double>(count) / 25)));
  for (size_t i = 0; i < count; i += stride) {
    drawing.body += Text(kLeft + (static_cast<double>(i) + 0.5) * pitch, base + 16, absl::StrCat(i),
                         "middle", "dim");
  }
  const bool bars = chart.runs.size() == 1 && !chart.lines;
  for (size_t r = 0; r < chart.runs.size(); ++r) {
    const std::vector<double>& values = chart.runs[r].values;
    std::string line;
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = kLeft + (static_cast<double>(i) + 0.5) * pitch;
      const double y = base - (values[i] - chart.bottom) * scale;
      const std::string title =
          absl::StrFormat("%s, %s %d: %.*f%s%s", chart.runs[r].name, chart.item, i, chart.digits,
                          values[i], chart.unit.empty() ? "" : " ", chart.unit);
      if (bars) {
        const double width = std::max(1.0, std::min(pitch * 0.78, 46.0));
        drawing.body += Box(x - width / 2, y, width, base - y, 0, title);
      } else {
        absl::StrAppend(&line, i == 0 ? "M" : "L", At(x), " ", At(y));
        absl::StrAppend(&drawing.body, "<circle class=\"f", r % kColours, "\" cx=\"", At(x),
                        "\" cy=\"", At(y), "\" r=\"2.6\"><title>", EscapeMarkup(title),
                        "</title></circle>\n");
      }
    }
    if (!line.empty()) {
      absl::StrAppend(&drawing.body, "<path class=\"line s", r % kColours, "\" d=\"", line,
                      "\"/>\n");
    }
  }
  drawing.body += Marks(chart, kLeft, pitch, head, base);
  drawing.body += Line(kLeft, base, kWidth - kRight, base, "axis");
  drawing.body += Text(kWidth - kRight, base + 33, chart.item, "end", "dim");
  drawing.body += Text(12, head + 12, chart.unit, "start", "dim");
  drawing.height = base + 40;
  return drawing;
}

Drawing Draw(const BarChart& chart) {
  constexpr double kLeft = 250, kRow = 27;
  Drawing drawing{"", 0};
  std::vector<std::string> names;
  double top = chart.limit;
  for (const BarChart::Bar& bar : chart.bars) {
    double sum = 0;
    for (const BarChart::Part& part : bar.parts) {
      sum += std::max(0.0, part.value);
      if (std::find(names.begin(), names.end(), part.name) == names.end()) {
        names.push_back(part.name);
      }
    }
    top = std::max(top, sum);
  }
  drawing.height = names.size() > 1 ? Legend(drawing, kLeft, names) : 8;
  if (chart.limit > 0) drawing.height += 16;
  const double head = drawing.height;
  const double base = head + kRow * static_cast<double>(chart.bars.size());
  const std::vector<double> ticks = Ticks(top * 1.08, 7);
  const double scale = (kWidth - kLeft - kRight) / ticks.back();
  for (const double tick : ticks) {
    drawing.body += Line(kLeft + tick * scale, head, kLeft + tick * scale, base, "grid");
    drawing.body += Text(kLeft + tick * scale, base + 15, Short(tick), "middle", "dim");
  }
  double y = head;
  for (const BarChart::Bar& bar : chart.bars) {
    drawing.body += Text(kLeft - 8, y + 17, Fitted(bar.name, kLeft - 12), "end");
    double x = kLeft, sum = 0;
    for (const BarChart::Part& part : bar.parts) {
      if (part.value <= 0) continue;
      const auto colour = std::find(names.begin(), names.end(), part.name) - names.begin();
      drawing.body +=
          Box(x, y + 4, part.value * scale, kRow - 9, static_cast<int>(colour),
              absl::StrFormat("%s, %s: %.2f %s", bar.name, part.name, part.value, chart.unit));
      x += part.value * scale;
      sum += part.value;
    }
    const std::string total = absl::StrFormat("%.2f", sum);
    drawing.body += Text(x + 6, y + 17, total, "start");
    y += kRow;
  }
  if (chart.limit > 0) {
    const double x = kLeft + chart.limit * scale;
    drawing.body += Line(x, head - 4, x, base, "mark");
    const bool left = x + 6.6 * static_cast<double>(chart.limit_name.size()) > kWidth;
    drawing.body += Text(x, head - 8, chart.limit_name, left ? "end" : "start", "mark");
  }
  drawing.body += Line(kLeft, head, kLeft, base, "axis");
  drawing.body += Text(kWidth - kRight, base + 31, chart.unit, "end", "dim");
  drawing.height = base + 38;
  return drawing;
}

// The space above a roofline's plot, and the width of the labels on its right.
constexpr double kHead = 14, kLabels = 250;

// Draws the card's peak, and the slope of its memory bandwidth. `x` and `y` map an intensity and
// FLOPs per second to positions; the plot begins at the intensity `least` and at `low` FLOPs per
// second, and ends at `right`.
template <typename X, typename Y>
void AddRoof(Drawing& drawing, const RooflineChart& chart, const X& x, const Y& y, double least,
             double low, double right) {
  if (!(chart.peak_flops_per_second > 0 && chart.bytes_per_second > 0)) return;
  const double ridge = chart.peak_flops_per_second / chart.bytes_per_second;
  // Begin where the slope of the memory enters the plot.
  const double enter = std::max(least, low / chart.bytes_per_second);
  absl::StrAppend(&drawing.body, "<path class=\"roof\" d=\"M", At(x(enter)), " ",
                  At(y(enter * chart.bytes_per_second)), "L", At(x(ridge)), " ",
                  At(y(chart.peak_flops_per_second)), "L", At(right), " ",
                  At(y(chart.peak_flops_per_second)), "\"/>\n");
  drawing.body +=
      Text(right, y(chart.peak_flops_per_second) - 7,
           absl::StrCat(CellText(Measure(chart.peak_flops_per_second / 1e12, 0)), " TFLOP/s"),
           "end", "dim");
  drawing.body += Text(
      x(std::sqrt(enter * ridge)) - 8, y(std::sqrt(enter * ridge) * chart.bytes_per_second) - 6,
      absl::StrCat(CellText(Measure(chart.bytes_per_second / 1e12, 2)), " TB/s"), "end", "dim");
}

// Draws the points with their labels, and returns the position of the last label.
template <typename X, typename Y>
double AddWorks(Drawing& drawing, const RooflineChart& chart, const X& x, const Y& y,
                double right) {
  // Put the labels in a column on the right, in the order of the points' heights, so that the
  // labels of close points are readable.
  std::vector<const RooflineChart::Work*> works;
  for (const RooflineChart::Work& work : chart.works) {
    if (work.intensity > 0 && work.flops_per_second > 0) works.push_back(&work);
  }
  std::stable_sort(works.begin(), works.end(), [](const auto* a, const auto* b) {
    return a->flops_per_second > b->flops_per_second;
  });
  double label = kHead - 18;
  for (size_t i = 0; i < works.size(); ++i) {
    const double px = x(works[i]->intensity), py = y(works[i]->flops_per_second);
    label = std::max(label + 18, py - 40);
    const std::string text =
        absl::StrFormat("%s: %.3g", works[i]->name, works[i]->flops_per_second / 1e12);
    drawing.body += Line(px, py, right + 12, label, "leader");
    absl::StrAppend(&drawing.body, "<circle class=\"f", i % kColours, "\" cx=\"", At(px),
                    "\" cy=\"", At(py), "\" r=\"5\"><title>", EscapeMarkup(text),
                    " TFLOP/s</title></circle>\n");
    drawing.body += Text(right + 16, label + 4, Fitted(text, kLabels - 10), "start");
  }
  return label;
}

Drawing Draw(const RooflineChart& chart) {
  constexpr double kLeft = 84, kPlot = 320;
  Drawing drawing{"", 0};
  double least = 1, most = 100, low = chart.peak_flops_per_second / 100,
         high = chart.peak_flops_per_second * 1.5;
  if (chart.peak_flops_per_second > 0 && chart.bytes_per_second > 0) {
    const double ridge = chart.peak_flops_per_second / chart.bytes_per_second;
    least = ridge / 100;
    most = ridge * 20;
  }
  for (const RooflineChart::Work& work : chart.works) {
    if (work.intensity <= 0 || work.flops_per_second <= 0) continue;
    least = std::min(least, work.intensity / 2);
    most = std::max(most, work.intensity * 2);
    low = low > 0 ? std::min(low, work.flops_per_second / 2) : work.flops_per_second / 2;
    high = std::max(high, work.flops_per_second * 1.5);
  }
  if (!(low > 0)) low = 1;
  const double base = kHead + kPlot;
  const double right = kWidth - kRight - kLabels;
  const auto x = [&](double intensity) {
    return kLeft + (std::log10(intensity) - std::log10(least)) /
                       (std::log10(most) - std::log10(least)) * (right - kLeft);
  };
  const auto y = [&](double flops) {
    return base -
           (std::log10(flops) - std::log10(low)) / (std::log10(high) - std::log10(low)) * kPlot;
  };
  for (int power = static_cast<int>(std::ceil(std::log10(least)));
       power <= static_cast<int>(std::floor(std::log10(most))); ++power) {
    const double value = std::pow(10, power);
    drawing.body += Line(x(value), kHead, x(value), base, "grid");
    drawing.body += Text(x(value), base + 15, Short(value), "middle", "dim");
  }
  for (int power = static_cast<int>(std::ceil(std::log10(low)));
       power <= static_cast<int>(std::floor(std::log10(high))); ++power) {
    const double value = std::pow(10, power);
    drawing.body += Line(kLeft, y(value), right, y(value), "grid");
    drawing.body += Text(kLeft - 8, y(value) + 4, Short(value / 1e12), "end", "dim");
  }
  drawing.body += Text(right, base + 31, "FLOPs for each byte of device memory", "end", "dim");
  drawing.body += Text(4, kHead - 2, "TFLOP/s", "start", "dim");
  AddRoof(drawing, chart, x, y, least, low, right);
  const double label = AddWorks(drawing, chart, x, y, right);
  drawing.body += Line(kLeft, base, right, base, "axis");
  drawing.body += Line(kLeft, kHead, kLeft, base, "axis");
  drawing.height = std::max(base, label) + 40;
  return drawing;
}

std::string Element(const Chart& chart, const std::string& inner) {
  const Drawing drawing = std::visit([](const auto& data) { return Draw(data); }, chart.data);
  return absl::StrCat("<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ",
                      At(kWidth), " ", At(drawing.height), "\" role=\"img\" aria-label=\"",
                      EscapeMarkup(chart.title), "\">\n", inner, drawing.body, "</svg>\n");
}

}  // namespace

std::string SvgElement(const Chart& chart) { return Element(chart, ""); }

std::string SvgFile(const Chart& chart) {
  return absl::StrCat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
      Element(chart, absl::StrCat("<style>", kChartStyle,
                                  "svg.chart>rect.paper{fill:var(--paper)}</style>\n"
                                  "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n")));
}

}  // namespace wan::client::reports
