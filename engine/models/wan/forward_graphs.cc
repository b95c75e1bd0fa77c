#include "engine/models/wan/forward_graphs.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace wan {
namespace {

int64_t BytesOf(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
}

at::Tensor CloneOf(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.clone() : at::Tensor();
}

}  // namespace

ForwardGraphs::ForwardGraphs(std::shared_ptr<DeviceGraphRecorder> recorder)
    : recorder_(std::move(recorder)) {}

at::Tensor ForwardGraphs::Run(const ForwardCall& call, const ForwardInputs& inputs,
                              const Compute& compute) {
  if (call.placement != placement_) {
    Release();
    placement_ = call.placement;
  }
  bool is_new = false;
  Entry& entry = Find(call.shape, is_new);
  if (is_new || entry.refused) return compute(inputs);
  if (entry.graph == nullptr) {
    if (!Record(entry, call, inputs, compute)) return compute(inputs);
  } else {
    entry.inputs.latents.copy_(inputs.latents);
    entry.inputs.sinusoids.copy_(inputs.sinusoids);
    CopyText(call.shape.batch, inputs.text, call.text_id);
  }
  entry.graph->Replay();
  at::Tensor output = entry.output.clone();
  Trim();
  return output;
}

ForwardGraphs::Entry& ForwardGraphs::Find(const ForwardShape& shape, bool& is_new) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.shape.IsLike(shape); });
  is_new = found == entries_.end();
  if (is_new) {
    entries_.emplace_front();
    entries_.front().shape = shape;
    Trim();
  } else {
    entries_.splice(entries_.begin(), entries_, found);
  }
  return entries_.front();
}

bool ForwardGraphs::Record(Entry& entry, const ForwardCall& call, const ForwardInputs& inputs,
                           const Compute& compute) {
  try {
    entry.inputs = {inputs.latents.clone(), inputs.sinusoids.clone(),
                    CopyText(call.shape.batch, inputs.text, call.text_id), inputs.rotary.clone(),
                    CloneOf(inputs.index)};
    entry.bytes = call.bytes;
    entry.graph = recorder_->Record([&] { entry.output = compute(entry.inputs); });
    return true;
  } catch (const c10::Error&) {
    // The exception means that memory is short or that the work cannot be recorded. If the device
    // is lost, the next work will fail as well and report it.
    entry.inputs = {};
    entry.output.reset();
    entry.refused = true;
    return false;
  }
}

const at::Tensor& ForwardGraphs::CopyText(int64_t batch, const at::Tensor& text, uint64_t id) {
  Text& kept = texts_[batch];
  if (!kept.copy.defined()) {
    kept.copy = text.clone();
  } else if (kept.id != id) {
    kept.copy.copy_(text);
  }
  kept.id = id;
  return kept.copy;
}

void ForwardGraphs::Trim() {
  // Never drop the latest graph, even if it alone exceeds the limit.
  while (entries_.size() > 1 && (entries_.size() > kMostGraphs || Bytes() > kMostBytes)) {
    entries_.pop_back();
    std::erase_if(texts_, [&](const auto& text) {
      return std::none_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
        return entry.graph != nullptr && entry.shape.batch == text.first;
      });
    });
  }
}

void ForwardGraphs::Release() {
  entries_.clear();
  texts_.clear();
}

int64_t ForwardGraphs::Bytes() const {
  int64_t bytes = 0;
  int64_t computed_in = 0;
  for (const auto& [batch, text] : texts_) bytes += BytesOf(text.copy);
  for (const Entry& entry : entries_) {
    if (entry.graph != nullptr) computed_in = std::max(computed_in, entry.bytes);
    bytes += BytesOf(entry.inputs.latents) + BytesOf(entry.inputs.sinusoids) +
             BytesOf(entry.inputs.rotary) + BytesOf(entry.inputs.index) + BytesOf(entry.output);
  }
  return bytes + computed_in;
}

size_t ForwardGraphs::size() const {
  return static_cast<size_t>(std::count_if(
      entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.graph != nullptr; }));
}

}  // namespace wan
