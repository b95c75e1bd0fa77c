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

// The inputs of a forward, except the weights. All tensors are on the device.
struct ForwardInputs {
  at::Tensor latents;    // fp32 [B, C, F, H, W]
  at::Tensor sinusoids;  // fp32 [timesteps, freq_dim]
  at::Tensor text;       // keys and values of all blocks
  at::Tensor rotary;     // from RotaryTable; depends only on the shape
  at::Tensor index;      // index of each token's timestep, or undefined; depends only on the shape
};

// What decides which kernels a forward runs. The number of timesteps and their tokens are part of
// it.
struct ForwardShape {
  int64_t batch = 0;
  TokenGrid grid{};
  TimestepRows rows;
  ForwardPolicy policy;

  // Values of timesteps need not be equal.
  bool IsLike(const ForwardShape& other) const {
    return batch == other.batch && grid == other.grid && rows.index == other.rows.index &&
           rows.timesteps.size() == other.rows.timesteps.size() && policy == other.policy;
  }
};

// One forward.
struct ForwardCall {
  ForwardShape shape;
  uint64_t text_id = 0;  // different for every text
  // Changes when any weight's memory changes; graphs with another number are not replayed.
  uint64_t placement = 0;
  int64_t bytes = 0;  // device memory that the forward computes in
};

// The graphs of one transformer, at most kMostGraphs and about kMostBytes; the least recently used
// is dropped first. Not thread-safe.
class ForwardGraphs {
 public:
  static constexpr size_t kMostGraphs = 8;
  static constexpr int64_t kMostBytes = int64_t{1} << 30;

  // Queues a forward and returns its result, in memory of its own.
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

  // Returns the number of graphs.
  size_t size() const;

 private:
  // The text that graphs of one batch size read.
  struct Text {
    at::Tensor copy;
    uint64_t id = 0;
  };
  struct Entry {
    ForwardShape shape;
    bool refused = false;                // whether the device could not record it
    std::unique_ptr<DeviceGraph> graph;  // null until the second forward
    ForwardInputs inputs;                // tensors that the graph reads
    at::Tensor output;                   // tensor that the graph writes
    int64_t bytes = 0;                   // device memory of its kernels
  };

  Entry& Find(const ForwardShape& shape, bool& is_new);
  // Records the entry's graph. False if the device could not.
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
