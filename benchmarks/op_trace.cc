#include "benchmarks/op_trace.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/device/device_moment.h"

namespace wan {
// Call is not in an unnamed namespace, because OpTrace::State has members of this type.
namespace op_trace {

struct Call {
  std::string op;
  DeviceMoment begin;
  std::optional<DeviceMoment> end;
};

}  // namespace op_trace

namespace {

using op_trace::Call;

std::string Describe(const at::RecordFunction& function) {
  std::vector<std::string> shapes;
  for (const c10::IValue& input : function.inputs()) {
    if (input.isTensor() && input.toTensor().defined()) {
      shapes.push_back(absl::StrJoin(input.toTensor().sizes(), "x"));
    }
  }
  return absl::StrCat(function.name(), " ", absl::StrJoin(shapes, " "));
}

}  // namespace

struct OpTrace::State {
  at::Device device;
  at::CallbackHandle handle = 0;
  int depth = 0;
  std::vector<op_trace::Call> calls;
};

namespace {

// The variable is thread-local, because LibTorch's callbacks are plain functions.
thread_local std::vector<Call>* current_calls = nullptr;
thread_local int* current_depth = nullptr;
thread_local at::Device current_device = at::kCPU;

std::unique_ptr<at::ObserverContext> Begin(const at::RecordFunction& function) {
  if ((*current_depth)++ == 0) {
    current_calls->push_back({Describe(function), DeviceMoment(current_device), std::nullopt});
  }
  return nullptr;
}

void End(const at::RecordFunction&, at::ObserverContext*) {
  if (--*current_depth == 0) current_calls->back().end.emplace(current_device);
}

}  // namespace

OpTrace::OpTrace(at::Device device) : state_(new State{device}) {
  current_calls = &state_->calls;
  current_depth = &state_->depth;
  current_device = device;
  state_->handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&Begin, &End)
          .needsInputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE}));
}

OpTrace::~OpTrace() {
  if (state_ != nullptr) at::removeCallback(state_->handle);
}

std::vector<OpTime> OpTrace::FinishInOrder() {
  at::removeCallback(state_->handle);
  const std::unique_ptr<State> state = std::move(state_);
  if (!state->device.is_cpu()) at::accelerator::synchronizeDevice(state->device.index());
  std::vector<OpTime> result;
  for (Call& call : state->calls) {
    if (!call.end.has_value()) continue;
    result.push_back({std::move(call.op), 1, call.begin.SecondsUntil(*call.end)});
  }
  return result;
}

std::vector<OpTime> OpTrace::Finish() {
  std::map<std::string, OpTime> times;
  for (const OpTime& call : FinishInOrder()) {
    OpTime& time = times[call.op];
    time.op = call.op;
    ++time.calls;
    time.seconds += call.seconds;
  }
  std::vector<OpTime> result;
  for (auto& [op, time] : times) result.push_back(std::move(time));
  std::sort(result.begin(), result.end(),
            [](const OpTime& a, const OpTime& b) { return a.seconds > b.seconds; });
  return result;
}

}  // namespace wan
