#include "client/compare/frame_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace wan::client {
namespace {

constexpr double kC1 = (0.01 * 255) * (0.01 * 255);
constexpr double kC2 = (0.03 * 255) * (0.03 * 255);
constexpr std::array<double, kMsSsimScales> kWeights = {0.0448, 0.2856, 0.3001, 0.2363, 0.1333};

using Window = std::array<double, kSsimWindow>;

struct Plane {
  int width = 0;
  int height = 0;
  std::vector<double> values;

  const double* row(int y) const {
    return values.data() + static_cast<size_t>(y) * static_cast<size_t>(width);
  }
};

Plane Luma(std::span<const uint8_t> rgb, int width, int height) {
  Plane plane{width, height, std::vector<double>(rgb.size() / 3)};
  for (size_t i = 0; i < plane.values.size(); ++i) {
    plane.values[i] = 0.2126 * rgb[3 * i] + 0.7152 * rgb[3 * i + 1] + 0.0722 * rgb[3 * i + 2];
  }
  return plane;
}

Plane Halved(const Plane& plane) {
  Plane half{(plane.width + 1) / 2, (plane.height + 1) / 2, {}};
  half.values.reserve(static_cast<size_t>(half.width) * static_cast<size_t>(half.height));
  for (int y = 0; y < half.height; ++y) {
    const double* const upper = plane.row(2 * y);
    const double* const lower = plane.row(std::min(2 * y + 1, plane.height - 1));
    for (int x = 0; x < half.width; ++x) {
      const int left = 2 * x, right = std::min(2 * x + 1, plane.width - 1);
      half.values.push_back((upper[left] + upper[right] + lower[left] + lower[right]) / 4);
    }
  }
  return half;
}

Window Gaussian() {
  constexpr double kSigma = 1.5;
  constexpr int kCentre = kSsimWindow / 2;
  Window window;
  double sum = 0;
  for (int i = 0; i < kSsimWindow; ++i) {
    const double distance = i - kCentre;
    window[i] = std::exp(-distance * distance / (2 * kSigma * kSigma));
    sum += window[i];
  }
  for (double& weight : window) weight /= sum;
  return window;
}

// The weighted sums over a window from which SSIM is computed.
enum Moment { kMeanA, kMeanB, kSquareA, kSquareB, kProduct, kMoments };

// Slides the window over two planes, one row of windows after the other.
class Windows {
 public:
  Windows(const Plane& a, const Plane& b)
      : a_(a), b_(b), count_(a.width - kSsimWindow + 1), window_(Gaussian()) {
    for (auto& lines : lines_) {
      for (std::vector<double>& line : lines) line.resize(count_);
    }
    for (std::vector<double>& sum : sums_) sum.resize(count_);
    products_.resize(a.width);
    for (int y = 0; y < kSsimWindow - 1; ++y) FilterLine(y);
  }

  // The number of windows in a row, and the number of rows.
  int count() const { return count_; }
  int rows() const { return a_.height - kSsimWindow + 1; }

  // Moves to a row of windows; call MoveTo for every row, from 0.
  void MoveTo(int row) {
    FilterLine(row + kSsimWindow - 1);
    for (int moment = 0; moment < kMoments; ++moment) {
      std::vector<double>& sum = sums_[moment];
      std::fill(sum.begin(), sum.end(), 0.0);
      for (int i = 0; i < kSsimWindow; ++i) {
        const double* const line = lines_[(row + i) % kSsimWindow][moment].data();
        const double weight = window_[i];
        for (int x = 0; x < count_; ++x) sum[x] += weight * line[x];
      }
    }
  }

  double at(Moment moment, int x) const { return sums_[moment][x]; }

 private:
  // Filters a line of both planes and of their products horizontally.
  void FilterLine(int y) {
    const double* const a = a_.row(y);
    const double* const b = b_.row(y);
    auto& lines = lines_[y % kSsimWindow];
    Filter(a, lines[kMeanA]);
    Filter(b, lines[kMeanB]);
    FilterProduct(a, a, lines[kSquareA]);
    FilterProduct(b, b, lines[kSquareB]);
    FilterProduct(a, b, lines[kProduct]);
  }
  void FilterProduct(const double* a, const double* b, std::vector<double>& line) {
    for (int x = 0; x < a_.width; ++x) products_[x] = a[x] * b[x];
    Filter(products_.data(), line);
  }
  void Filter(const double* values, std::vector<double>& line) const {
    std::fill(line.begin(), line.end(), 0.0);
    for (int i = 0; i < kSsimWindow; ++i) {
      const double weight = window_[i];
      for (int x = 0; x < count_; ++x) line[x] += weight * values[x + i];
    }
  }

  const Plane& a_;
  const Plane& b_;
  const int count_;
  const Window window_;
  // The last kSsimWindow lines, filtered horizontally; line y is at index y % kSsimWindow.
  std::array<std::array<std::vector<double>, kMoments>, kSsimWindow> lines_;
  // The sums of the windows in the current row.
  std::array<std::vector<double>, kMoments> sums_;
  std::vector<double> products_;
};

// SSIM's parts, as means over all windows.
struct Means {
  double ssim = 0;
  // Product of contrast and structure, which is SSIM without luminance.
  double contrast = 0;
};

Means MeansOf(const Plane& a, const Plane& b) {
  Windows windows(a, b);
  Means means;
  for (int row = 0; row < windows.rows(); ++row) {
    windows.MoveTo(row);
    for (int x = 0; x < windows.count(); ++x) {
      const double mean_a = windows.at(kMeanA, x), mean_b = windows.at(kMeanB, x);
      const double variances =
          windows.at(kSquareA, x) - mean_a * mean_a + windows.at(kSquareB, x) - mean_b * mean_b;
      const double covariance = windows.at(kProduct, x) - mean_a * mean_b;
      const double contrast = (2 * covariance + kC2) / (variances + kC2);
      means.contrast += contrast;
      means.ssim +=
          contrast * (2 * mean_a * mean_b + kC1) / (mean_a * mean_a + mean_b * mean_b + kC1);
    }
  }
  const double count = static_cast<double>(windows.rows()) * windows.count();
  means.contrast /= count;
  means.ssim /= count;
  return means;
}

}  // namespace

double Psnr(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  int64_t squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const int difference = a[i] - b[i];
    squares += difference * difference;
  }
  if (squares == 0) return kEqualPsnr;
  return std::min(kEqualPsnr, 10 * std::log10(255.0 * 255.0 * static_cast<double>(a.size()) /
                                              static_cast<double>(squares)));
}

int MsSsimScales(int width, int height) {
  int scales = 0;
  for (int side = std::min(width, height); side >= kSsimWindow && scales < kMsSsimScales;
       side = (side + 1) / 2) {
    ++scales;
  }
  return scales;
}

FrameMetrics MeasureFrame(std::span<const uint8_t> a, std::span<const uint8_t> b, int width,
                          int height) {
  FrameMetrics metrics;
  metrics.psnr = Psnr(a, b);
  if (std::equal(a.begin(), a.end(), b.begin())) {
    metrics.ssim = metrics.ms_ssim = 1;
    metrics.identical = true;
    return metrics;
  }
  const int scales = MsSsimScales(width, height);
  // The published five weights add up to 1.0001, and are used as published.
  double weights = scales == kMsSsimScales ? 1 : 0;
  for (int scale = 0; scale < scales && scales < kMsSsimScales; ++scale) weights += kWeights[scale];
  Plane plane_a = Luma(a, width, height), plane_b = Luma(b, width, height);
  metrics.ms_ssim = 1;
  for (int scale = 0; scale < scales; ++scale) {
    if (scale > 0) {
      plane_a = Halved(plane_a);
      plane_b = Halved(plane_b);
    }
    const Means means = MeansOf(plane_a, plane_b);
    if (scale == 0) metrics.ssim = means.ssim;
    const double mean = scale + 1 == scales ? means.ssim : means.contrast;
    metrics.ms_ssim *= std::pow(std::max(mean, 0.0), kWeights[scale] / weights);
  }
  return metrics;
}

}  // namespace wan::client
