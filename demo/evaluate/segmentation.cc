#include "demo/evaluate/segmentation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>

namespace wan::demo {
namespace {

// The background's colour is taken from this many pixels at each edge of the frame.
constexpr int kBorder = 6;
// A pixel is inside a patch of one colour if the pixels at this distance around it have the same
// colour; pixels at edges, where colours mix, are not.
constexpr int kInterior = 3;
// The colour of a visible object differs by at least 80 from its background (train/world.py); what
// differs by less than half of that is a smudge, whatever name its colour has.
constexpr float kFaint = 40;
// A colour counts as an object if it has at least this many interior pixels in each frame, and at
// least this share of those of the larger object.
constexpr double kFewestInterior = 40;
constexpr double kSmallestShare = 0.06;
// Patches whose colours differ by less than this are shades of one colour; colours with different
// names differ by at least 84.
constexpr float kOneColour = 60;
// A pixel that differs this much from every mix of the background with an object's colour belongs
// to something else.
constexpr float kStrange = 80;
// A blurred object has a rim where its colour and the background's mix, which may look like another
// colour: near a mix of the two, and beside the object along this share of the rim's outline.
constexpr float kMixed = 40;
constexpr double kRimShare = 0.4;
// A speck with fewer pixels is not an object.
constexpr int kSmallestArea = 60;

constexpr int kBits = 5;  // bits of each channel, in tables by colour
constexpr int kTable = 1 << (3 * kBits);

int TableIndex(const uint8_t* rgb) {
  constexpr int drop = 8 - kBits;
  return (rgb[0] >> drop) << (2 * kBits) | (rgb[1] >> drop) << kBits | (rgb[2] >> drop);
}

Rgb TableColour(int index) {
  constexpr int mask = (1 << kBits) - 1, step = 1 << (8 - kBits);
  auto middle = [](int level) { return level * step + (step - 1) / 2.0f; };
  return {middle(index >> (2 * kBits)), middle(index >> kBits & mask), middle(index & mask)};
}

// Smooths one frame with a box filter of 3x3, against noise. The outermost pixels keep their
// values.
void Smooth(const uint8_t* frame, int width, int height, std::vector<uint16_t>& sums,
            uint8_t* smooth) {
  const size_t stride = size_t(width) * 3;
  std::copy_n(frame, stride * height, smooth);
  sums.resize(stride);
  for (int y = 1; y + 1 < height; ++y) {
    const uint8_t* const row = frame + y * stride;
    for (size_t i = 0; i < stride; ++i) sums[i] = row[i - stride] + row[i] + row[i + stride];
    uint8_t* const out = smooth + y * stride;
    for (size_t i = 3; i + 3 < stride; ++i) {
      out[i] = static_cast<uint8_t>((sums[i - 3] + sums[i] + sums[i + 3] + 4) / 9);
    }
  }
}

// Returns the median of the borders of all frames; an object that leaves the frame covers less than
// half of them.
Rgb BorderMedian(const ClipView& clip, const std::vector<uint8_t>& pixels) {
  std::array<std::array<int, 256>, 3> counts{};
  int total = 0;
  for (int t = 0; t < clip.frames; ++t) {
    for (int y = 0; y < clip.height; ++y) {
      const bool edge_row = y < kBorder || y >= clip.height - kBorder;
      for (int x = 0; x < clip.width; ++x) {
        if (!edge_row && x == kBorder) x = clip.width - kBorder;
        const uint8_t* rgb = &pixels[((size_t(t) * clip.height + y) * clip.width + x) * 3];
        for (int c = 0; c < 3; ++c) ++counts[c][rgb[c]];
        ++total;
      }
    }
  }
  std::array<float, 3> median;
  for (int c = 0; c < 3; ++c) {
    int level = 0;
    for (int seen = counts[c][0]; seen * 2 < total; seen += counts[c][++level]) {
    }
    median[c] = static_cast<float>(level);
  }
  return {median[0], median[1], median[2]};
}

struct Patch {
  double pixels = 0;  // number of interior pixels in each frame
  Rgb mean;
};

// Returns the colours of the clip except the background's, the most frequent first.
std::vector<Patch> FindPatches(const ClipView& clip, const std::vector<uint8_t>& pixels,
                               const Rgb& background, const Vocabulary& vocabulary) {
  constexpr uint8_t kNone = 255;
  std::vector<uint8_t> class_of(kTable);
  for (int i = 0; i < kTable; ++i) {
    const Rgb rgb = TableColour(i);
    const int nearest = NearestColour(vocabulary.colours, rgb);
    const float least = std::max(kFaint, Distance(rgb, vocabulary.colours[nearest].rgb));
    const bool empty = Distance(rgb, background) <= least;
    class_of[i] = empty ? kNone : static_cast<uint8_t>(nearest);
  }

  struct Sum {
    double n = 0, r = 0, g = 0, b = 0;
  };
  std::vector<Sum> sums(vocabulary.colours.size());
  const int width = clip.width, height = clip.height;
  std::vector<uint8_t> classes(size_t(width) * height);
  const std::ptrdiff_t down = std::ptrdiff_t(kInterior) * width;
  const std::ptrdiff_t slant = 2 * width;
  const std::array<std::ptrdiff_t, 8> around = {-down,      down,      -kInterior, kInterior,
                                                -slant - 2, 2 - slant, slant - 2,  slant + 2};
  for (int t = 0; t < clip.frames; ++t) {
    const uint8_t* const frame = &pixels[size_t(t) * width * height * 3];
    for (size_t i = 0; i < classes.size(); ++i) classes[i] = class_of[TableIndex(frame + i * 3)];
    for (int y = kInterior; y < height - kInterior; ++y) {
      for (int x = kInterior; x < width - kInterior; ++x) {
        const uint8_t* const here = &classes[size_t(y) * width + x];
        if (*here == kNone) continue;
        if (!std::all_of(around.begin(), around.end(),
                         [&](std::ptrdiff_t offset) { return here[offset] == *here; })) {
          continue;
        }
        const uint8_t* const rgb = frame + (size_t(y) * width + x) * 3;
        Sum& sum = sums[*here];
        sum.n += 1;
        sum.r += rgb[0];
        sum.g += rgb[1];
        sum.b += rgb[2];
      }
    }
  }

  std::vector<Patch> patches;
  for (const Sum& sum : sums) {
    if (sum.n == 0) continue;
    patches.push_back(
        {sum.n / clip.frames, {float(sum.r / sum.n), float(sum.g / sum.n), float(sum.b / sum.n)}});
  }
  std::sort(patches.begin(), patches.end(),
            [](const Patch& a, const Patch& b) { return a.pixels > b.pixels; });
  return patches;
}

// Returns the one or two colours that are objects; joins the shades of one colour.
std::vector<Patch> ChooseObjects(const std::vector<Patch>& patches) {
  std::vector<Patch> objects;
  for (const Patch& patch : patches) {
    auto same = std::find_if(objects.begin(), objects.end(), [&](const Patch& object) {
      return Distance(object.mean, patch.mean) < kOneColour;
    });
    if (same != objects.end()) {
      const float share = float(patch.pixels / (patch.pixels + same->pixels));
      same->mean.r += share * (patch.mean.r - same->mean.r);
      same->mean.g += share * (patch.mean.g - same->mean.g);
      same->mean.b += share * (patch.mean.b - same->mean.b);
      same->pixels += patch.pixels;
    } else if (patch.pixels >= kFewestInterior && objects.size() < 2 &&
               (objects.empty() || patch.pixels >= kSmallestShare * objects[0].pixels)) {
      objects.push_back(patch);
    }
  }
  return objects;
}

// The mix of two colours that is nearest to a third colour.
struct Mix {
  float share;  // share of the colour `to`, 0 to 1
  float away;   // distance of the third colour from the mix
};

Mix NearestMix(const Rgb& rgb, const Rgb& from, const Rgb& to) {
  const Rgb line{to.r - from.r, to.g - from.g, to.b - from.b};
  const float length = Distance(from, to);
  const float along =
      ((rgb.r - from.r) * line.r + (rgb.g - from.g) * line.g + (rgb.b - from.b) * line.b) /
      (length * length);
  const float share = std::clamp(along, 0.0f, 1.0f);
  const Rgb mix{from.r + share * line.r, from.g + share * line.g, from.b + share * line.b};
  return {share, Distance(rgb, mix)};
}

// Returns for every colour to which object it belongs (1 or 2), or 0 for the background. A colour
// on the line from the background to an object's colour belongs to the edge of that object; from
// the middle of the line on, to the object.
std::vector<uint8_t> OwnerTable(const Rgb& background, const std::vector<Patch>& objects) {
  std::vector<uint8_t> owner(kTable, 0);
  for (int i = 0; i < kTable; ++i) {
    const Rgb rgb = TableColour(i);
    float least = 1e9f;
    for (size_t k = 0; k < objects.size(); ++k) {
      const Rgb& colour = objects[k].mean;
      const Mix mix = NearestMix(rgb, background, colour);
      // The second term decides between colours that lie nearly on one line, as brown and orange do
      // on a black background.
      const float cost = mix.away + 0.3f * Distance(rgb, colour);
      if (cost >= least) continue;
      least = cost;
      owner[i] = mix.share > 0.5f && mix.away < kStrange ? static_cast<uint8_t>(k + 1) : 0;
    }
  }
  return owner;
}

// The owner of every pixel; each frame has a vector.
using Owners = std::vector<std::vector<uint8_t>>;

Owners OwnersOf(const ClipView& clip, const std::vector<uint8_t>& pixels, const Rgb& background,
                const std::vector<Patch>& objects) {
  const std::vector<uint8_t> owner_of = OwnerTable(background, objects);
  const size_t frame_size = size_t(clip.width) * clip.height;
  Owners owners(clip.frames, std::vector<uint8_t>(frame_size));
  for (int t = 0; t < clip.frames; ++t) {
    const uint8_t* const frame = &pixels[t * frame_size * 3];
    for (size_t i = 0; i < frame_size; ++i) owners[t][i] = owner_of[TableIndex(frame + i * 3)];
  }
  return owners;
}

// Returns true if the second of two objects is only the blurred rim of the first one.
bool SecondIsRim(const std::vector<Patch>& objects, const Rgb& background, const Owners& owners,
                 int width) {
  if (NearestMix(objects[1].mean, background, objects[0].mean).away > kMixed) return false;
  int64_t beside_first = 0, beside_background = 0;
  auto count = [&](uint8_t a, uint8_t b) {
    if (a + b == 3) ++beside_first;  // the one is object 1, the other object 2
    if (std::max(a, b) == 2 && std::min(a, b) == 0) ++beside_background;
  };
  for (const std::vector<uint8_t>& frame : owners) {
    for (size_t i = width; i < frame.size(); ++i) {
      count(frame[i], frame[i - 1]);
      count(frame[i], frame[i - width]);
    }
  }
  return double(beside_first) > kRimShare * double(beside_first + beside_background);
}

struct Component {
  int area = 0;
  double x = 0;
  double y = 0;
  std::vector<int> pixels;
};

// Returns the connected pieces of owner `which`, the larger one first, at most two.
std::vector<Component> LargestComponents(const std::vector<uint8_t>& owners, int width, int height,
                                         uint8_t which, std::vector<uint8_t>& visited) {
  std::vector<Component> found;
  visited.assign(owners.size(), 0);
  std::vector<int> pixels;
  for (int start = 0; start < width * height; ++start) {
    if (owners[start] != which || visited[start]) continue;
    pixels.assign(1, start);
    visited[start] = 1;
    double x_sum = 0, y_sum = 0;
    for (size_t next = 0; next < pixels.size(); ++next) {
      const int at = pixels[next], x = at % width, y = at / width;
      x_sum += x + 0.5;
      y_sum += y + 0.5;
      auto visit = [&](int neighbour) {
        if (owners[neighbour] != which || visited[neighbour]) return;
        visited[neighbour] = 1;
        pixels.push_back(neighbour);
      };
      if (x > 0) visit(at - 1);
      if (x + 1 < width) visit(at + 1);
      if (y > 0) visit(at - width);
      if (y + 1 < height) visit(at + width);
    }
    const int area = static_cast<int>(pixels.size());
    if (area < kSmallestArea) continue;
    found.push_back({area, x_sum / area, y_sum / area, pixels});
    std::sort(found.begin(), found.end(),
              [](const Component& a, const Component& b) { return a.area > b.area; });
    if (found.size() > 2) found.pop_back();
  }
  return found;
}

Mask MakeMask(const Component& component, const std::vector<uint8_t>& owners, int width,
              int height) {
  Mask mask{.width = width,
            .height = height,
            .inside = std::vector<uint8_t>(size_t(width) * height),
            .area = component.area,
            .x = component.x,
            .y = component.y};
  const uint8_t own = owners[component.pixels.front()];
  int cut = 0;
  for (const int at : component.pixels) {
    mask.inside[at] = 1;
    const int x = at % width, y = at / width;
    if (x < 1 || y < 1 || x + 1 >= width || y + 1 >= height) {
      ++cut;
      continue;
    }
    for (const int neighbour : {at - 1, at + 1, at - width, at + width}) {
      cut += owners[neighbour] != 0 && owners[neighbour] != own;
    }
  }
  // Allow a few pixels, because a ragged edge may have a pixel or two of another colour.
  mask.whole = cut < 4;
  return mask;
}

bool SeenOften(const Layer& layer) {
  const auto seen = std::count_if(layer.masks.begin(), layer.masks.end(),
                                  [](const Mask& mask) { return mask.area > 0; });
  return seen * 3 >= static_cast<std::ptrdiff_t>(layer.masks.size());
}

// Separates two objects of one colour: pieces of similar size that are side by side in most frames.
std::optional<std::array<Layer, 2>> SplitByPlace(
    const std::vector<std::vector<Component>>& components, const Owners& owners, int width,
    int height) {
  const auto pairs =
      std::count_if(components.begin(), components.end(), [&](const std::vector<Component>& two) {
        return two.size() == 2 && two[1].area * 10 > two[0].area * 3 &&
               std::abs(two[0].x - two[1].x) > width / 5.0;
      });
  if (pairs * 3 < static_cast<std::ptrdiff_t>(components.size()) * 2) return std::nullopt;
  std::array<Layer, 2> layers;
  for (size_t t = 0; t < components.size(); ++t) {
    std::array<Mask, 2> masks;
    for (const Component& component : components[t]) {
      const int side = component.x * 2 > width;
      if (component.area > masks[side].area) {
        masks[side] = MakeMask(component, owners[t], width, height);
      }
    }
    for (int side : {0, 1}) layers[side].masks.push_back(std::move(masks[side]));
  }
  return layers;
}

}  // namespace

Segmentation Segment(const ClipView& clip, const Vocabulary& vocabulary) {
  const int width = clip.width, height = clip.height;
  const size_t frame_size = size_t(width) * height;
  std::vector<uint8_t> pixels(clip.rgb.size());
  std::vector<uint16_t> sums;
  for (int t = 0; t < clip.frames; ++t) {
    const size_t offset = t * frame_size * 3;
    Smooth(clip.rgb.data() + offset, width, height, sums, pixels.data() + offset);
  }

  const Rgb background = BorderMedian(clip, pixels);
  Segmentation result{.background = NearestColour(vocabulary.backgrounds, background),
                      .ground = background,
                      .layers = {}};
  std::vector<Patch> objects = ChooseObjects(FindPatches(clip, pixels, background, vocabulary));
  if (objects.empty()) return result;
  Owners owners = OwnersOf(clip, pixels, background, objects);
  if (objects.size() == 2 && SecondIsRim(objects, background, owners, width)) {
    objects.pop_back();
    owners = OwnersOf(clip, pixels, background, objects);
  }

  std::vector<uint8_t> visited;
  for (size_t k = 0; k < objects.size(); ++k) {
    std::vector<std::vector<Component>> components;
    for (int t = 0; t < clip.frames; ++t) {
      components.push_back(
          LargestComponents(owners[t], width, height, static_cast<uint8_t>(k + 1), visited));
    }
    const int colour = NearestColour(vocabulary.colours, objects[k].mean);
    if (objects.size() == 1) {
      if (auto pair = SplitByPlace(components, owners, width, height)) {
        for (Layer& layer : *pair) {
          layer.colour = colour;
          layer.rgb = objects[k].mean;
          result.layers.push_back(std::move(layer));
        }
        return result;
      }
    }
    Layer layer{.colour = colour, .rgb = objects[k].mean, .masks = {}};
    for (int t = 0; t < clip.frames; ++t) {
      layer.masks.push_back(components[t].empty()
                                ? Mask()
                                : MakeMask(components[t].front(), owners[t], width, height));
    }
    if (SeenOften(layer)) result.layers.push_back(std::move(layer));
  }
  return result;
}

}  // namespace wan::demo
