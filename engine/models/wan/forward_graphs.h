// Keeps forwards of the transformer as graphs. A forward of a small video has some hundred kernels
// that each take less time than their launch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>

#include "engine/device/device_graph.h"
#include "engine/models/wan/patches.h"
#include "engine/models/wan/timestep_rows.h"

namespace wan {

// The inputs of a forward besides the weights. All tensors are on the device.
struct ForwardInputs {
  at::Tensor latents;    // fp32 [B, C, F, H, W]
  at::Tensor sinusoids;  // fp32 [timesteps, freq_dim]
  at::Tensor text;       // keys and values of all blocks
  at::Tensor rotary;     // RotaryTable; depends only on the shape
  at::Tensor index;      // each token's timestep, or undefined; depends on the shape alone
};

// The facts that decide the kernels of a forward. Two forwards differ also if the number of
// timesteps or their places do.
struct ForwardShape {
  int64_t batch = 0;
  TokenGrid grid{};
  TimestepRows rows;

  // The timesteps themselves are not part of the shape.
  bool IsLike(const ForwardShape& other) const {
    return batch == other.batch && grid == other.grid && rows.index == other.rows.index &&
           rows.timesteps.size() == other.rows.timesteps.size();
  }
};

// One forward.
struct ForwardCall {
  ForwardShape shape;
  uint64_t text_id = 0;  // another number for every other text
  // A number that changes with the memory of any weight; graphs with another number are not
  // replayed.
  uint64_t placement = 0;
  int64_t bytes = 0;  // the device memory that the kernels compute in
};

// The graphs of one transformer, at most kMostGraphs and about kMostBytes; the one that was not
// used for the longest time goes first. Not thread-safe.
class ForwardGraphs {
 public:
  static constexpr size_t kMostGraphs = 8;
  static constexpr int64_t kMostBytes = int64_t{1} << 30;

  // Queues a forward and returns its result, which no other memory shares.
  using Compute = std::function<at::Tensor(const ForwardInputs& inputs)>;

  explicit ForwardGraphs(std::shared_ptr<DeviceGraphRecorder> recorder);

  // Returns the result of `compute` for the inputs. The first forward of a shape calls it, which
  // also makes libraries choose their kernels; the second records it; later ones replay the record.
  // If the device cannot record it, every forward calls `compute`.
  at::Tensor Run(const ForwardCall& call, const ForwardInputs& inputs, const Compute& compute);

  // Frees all graphs and their memory.
  void Release();

  // Returns the bytes of device memory that the graphs hold: inputs, results, and the shared memory
  // of their kernels.
  int64_t Bytes() const;

  // Returns the number of graphs.
  size_t size() const;

 private:
  // The text as graphs of one batch size read it.
  struct Text {
    at::Tensor copy;
    uint64_t id = 0;
  };
  struct Entry {
    ForwardShape shape;
    bool refused = false;                // the device could not record it
    std::unique_ptr<DeviceGraph> graph;  // null until the second forward
    ForwardInputs inputs;                // inputs of the graph
    at::Tensor output;                   // its result
    int64_t bytes = 0;                   // memory of its kernels
  };

  Entry& Find(const ForwardShape& shape, bool& is_new);
  // Records the entry; false if the device could not.
  bool Record(Entry& entry, const ForwardCall& call, const ForwardInputs& inputs,
              const Compute& compute);
  const at::Tensor& CopyText(int64_t batch, const at::Tensor& text, uint64_t id);
  void Trim();

  const std::shared_ptr<DeviceGraphRecorder> recorder_;
  uint64_t placement_ = 0;
  std::map<int64_t, Text> texts_;  // by batch size
  std::list<Entry> entries_;       // the latest first
};

}  // namespace wan
