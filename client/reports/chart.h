// Charts as data. svg.h draws them; formats without pictures leave them out, since every figure of
// a chart stands in a table too.
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
    // Bars of one group have one colour and one row; the group's name is the row's title.
    std::string group;
  };
  struct Series {
    // Title with the unit: "GPU memory (GiB)".
    std::string name;
    // In order of time. The value holds until the next point.
    std::vector<Point> points;
    // The top of the axis; 0: the largest value.
    double top = 0;
  };
  std::vector<Bar> bars;
  std::vector<Series> series;
};

// One value for each step, and the steps at which the level changes.
struct StepChart {
  struct Run {
    std::string name;
    std::vector<double> seconds;
  };
  struct Mark {
    // The first step after the change, counted from 0.
    int step = 0;
    std::string text;
  };
  std::vector<Run> runs;
  std::vector<Mark> marks;
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
  // A line across all bars, for example the memory of the card; 0: none.
  double limit = 0;
  std::string limit_name;
};

// Work against the card's ceilings (a roofline). Both axes are logarithmic.
struct RooflineChart {
  struct Work {
    std::string name;
    // FLOPs for each byte of device memory that is moved.
    double intensity = 0;
    double flops_per_second = 0;
  };
  double peak_flops_per_second = 0;
  double bytes_per_second = 0;
  std::vector<Work> works;
};

struct Chart {
  std::string title;
  // The file's name without its ending, and the anchor: "stage_timeline".
  std::string key;
  std::variant<TimelineChart, StepChart, BarChart, RooflineChart> data;
};

}  // namespace wan::client::reports
