// Charts as data, which svg.h draws. Formats without pictures leave the charts out, because every
// figure of a chart is also in a table.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace wan::client::reports {

struct Point {
  double x = 0;
  double y = 0;
};

// Stages as bars over a time axis in seconds, and below them one strip for each series.
struct TimelineChart {
  struct Bar {
    std::string name;
    double start = 0;
    double end = 0;
    // Bars with the same group share a colour and a row, which has the group as its title.
    std::string group;
  };
  struct Series {
    // The title with the unit: "GPU memory (GiB)".
    std::string name;
    // The points, ordered by time. The value of each point is valid until the next point.
    std::vector<Point> points;
    // The upper end of the axis; 0: the largest value decides.
    double top = 0;
  };
  std::vector<Bar> bars;
  std::vector<Series> series;
};

// A value of each item of a sequence, such as the seconds of each step, and marks at some of them.
struct SequenceChart {
  struct Run {
    std::string name;
    std::vector<double> values;
  };
  struct Mark {
    // The item, counted from 0.
    int item = 0;
    std::string text;
  };
  std::vector<Run> runs;
  std::vector<Mark> marks;
  std::string item = "step";
  std::string unit = "s";
  // The number of digits in the text that appears at a pointer.
  int digits = 3;
  // Whether a single run is drawn as a line with marks at the items. Otherwise a single run is
  // drawn as bars, and each mark stands before its item, where a change happens. Several runs are
  // always drawn as lines.
  bool lines = false;
  // The value at the bottom of the axis; bars need 0.
  double bottom = 0;
};

// Horizontal bars; a bar of several parts is stacked.
struct BarChart {
  struct Part {
    std::string name;
    double value = 0;
  };
  struct Bar {
    std::string name;
    std::vector<Part> parts;
  };
  std::string unit;
  std::vector<Bar> bars;
  // The value at which a line crosses all bars, for example the card's memory; 0: no line.
  double limit = 0;
  std::string limit_name;
};

// A roofline chart: compares work with the card's ceilings, on logarithmic axes.
struct RooflineChart {
  struct Work {
    std::string name;
    // FLOPs per byte of device memory read or written.
    double intensity = 0;
    double flops_per_second = 0;
  };
  double peak_flops_per_second = 0;
  double bytes_per_second = 0;
  std::vector<Work> works;
};

struct Chart {
  std::string title;
  // The file's name without ending, which is also the anchor: "stage_timeline".
  std::string key;
  std::variant<TimelineChart, SequenceChart, BarChart, RooflineChart> data;
};

}  // namespace wan::client::reports
