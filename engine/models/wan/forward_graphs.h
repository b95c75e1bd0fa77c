// Records forwards of the transformer as graphs, for small videos: their hundreds of kernels take
// less time than their launches.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>

#include "engine/device/device_graph.h"
#include "engine/models/video_transformer.h"
#include "engine/models/wan/patches.h"
#include "engine/models/wan/timestep_rows.h"

namespace wan {

// The inputs of a forward other than the weights. All tensors are on the device.
struct ForwardInputs {
  at::Tensor latents;    // fp32, shape [B, C, F, H, W]
  at::Tensor sinusoids;  // fp32, shape [timesteps, freq_dim]
  at::Tensor text;       // keys and values of all blocks
  at::Tensor rotary;     // from RotaryTable; depends only on the shape
  at::Tensor index;      // index of each token's timestep, or undefined; depends only on the shape
};

// The properties that decide which kernels a forward runs. The properties include the number of
// timesteps and which tokens have which timestep.
struct ForwardShape {
  int64_t batch = 0;
  TokenGrid grid{};
  TimestepRows rows;
  ForwardPolicy policy;

  // The values of the timesteps may differ between forwards of the same shape.
  bool IsLike(const ForwardShape& other) const {
    return batch == other.batch && grid == other.grid && rows.index == other.rows.index &&
           rows.timesteps.size() == other.rows.timesteps.size() && policy == other.policy;
  }
};

// Describes one forward.
struct ForwardCall {
  ForwardShape shape;
  uint64_t text_id = 0;  // unique for each prepared text
  // Changes when the memory of any weight changes; a graph recorded with another number is not
  // replayed.
  uint64_t placement = 0;
  int64_t bytes = 0;  // bytes of device memory in which the forward computes
};

// The recorded graphs of one transformer: at most kMostGraphs of them, and about kMostBytes. If
// there are more, the least recently used graph is dropped first. Not thread-safe.
class ForwardGraphs {
 public:
  static constexpr size_t kMostGraphs = 8;
  static constexpr int64_t kMostBytes = int64_t{1} << 30;

  // Queues a forward and returns its result, in memory that nobody else uses.
  using Compute = std::function<at::Tensor(const ForwardInputs& inputs)>;

  explicit ForwardGraphs(std::shared_ptr<DeviceGraphRecorder> recorder);

  // Returns the result of `compute` for the inputs. The first forward of a shape calls `compute`,
  // so that libraries choose their kernels; the second records it; later ones replay the recording.
  // If the device cannot record, every forward calls `compute`.
  at::Tensor Run(const ForwardCall& call, const ForwardInputs& inputs, const Compute& compute);

  // Frees all graphs and their memory.
  void Release();

  // Returns the device bytes that the graphs hold: inputs, results and the kernels' shared pool.
  int64_t Bytes() const;

  // Returns the number of graphs held.
  size_t size() const;

 private:
  // A copy of the texts that all graphs of one batch size read.
  struct Text {
    at::Tensor copy;
    uint64_t id = 0;
  };
  struct Entry {
    ForwardShape shape;
    bool refused = false;                // true: the device could not record this forward
    std::unique_ptr<DeviceGraph> graph;  // null until the second forward of this shape
    ForwardInputs inputs;                // tensors that the graph reads
    at::Tensor output;                   // tensor that the graph writes
    int64_t bytes = 0;                   // bytes of device memory of the graph's kernels
  };

  Entry& Find(const ForwardShape& shape, bool& is_new);
  // Records the graph of `entry`. Returns false if the device could not record it.
  bool Record(Entry& entry, const ForwardCall& call, const ForwardInputs& inputs,
              const Compute& compute);
  const at::Tensor& CopyText(int64_t batch, const at::Tensor& text, uint64_t id);
  void Trim();

  const std::shared_ptr<DeviceGraphRecorder> recorder_;
  uint64_t placement_ = 0;
  std::map<int64_t, Text> texts_;  // texts by batch size
  std::list<Entry> entries_;       // most recently used first
};

}  // namespace wan
