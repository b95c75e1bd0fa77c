// A library that calls itself libnvidia-ml.so.1 and knows one GPU, "0000:01:00.0". Who links it
// gets it from dlopen, too, in place of the driver's.
#pragma once

namespace wan {

inline constexpr char kFakeGpu[] = "0000:01:00.0";

// Times that a GPM call began while another one was under way.
int FakeNvmlOverlaps();
// Calls of any function of GPM.
int FakeNvmlGpmCalls();
// GPM samples that have been allocated and not freed.
int FakeNvmlSamples();

}  // namespace wan
