// Measures the ceilings with which every row is compared: the rates of products and attention with
// a model's shapes, and of copies within device memory and to and from the host. The fastest known
// code measures each rate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/ceilings.h"

namespace wan {

class Session;

// The shapes of products and attention in one transformer block.
struct BlockShape {
  std::string name;
  int64_t tokens = 0;
  int64_t dim = 0;
  int64_t ffn_dim = 0;
  int64_t heads = 0;
};

struct CeilingPlan {
  // The ceiling of products (or of attention) is the rate over all shapes together.
  std::vector<BlockShape> shapes;
  // The precision of the shapes' products. All other precisions are measured only with the widest
  // product of the first shape.
  std::string precision = "bf16";
  std::vector<std::string> further_precisions;
  double seconds = 1;  // how many seconds calls run back to back for each rate
  int64_t copy_bytes = int64_t{1} << 32;
  int64_t host_copy_bytes = int64_t{1} << 30;
  bool prints = true;  // true: adds the rows to the session
};

// Returns the shapes for the session's device. On a GPU these are the published sizes of `models`
// (for example "ti2v-5b") in bf16; on a CPU they have few tokens and are in fp32, so that a rate
// takes only seconds. If `tokens` is above 0, it replaces the number of tokens.
absl::StatusOr<CeilingPlan> MakeCeilingPlan(const Session& session,
                                            const std::vector<std::string>& models, int64_t tokens);

struct MeasuredCeilings {
  Ceilings ceilings;
  std::vector<BenchRow> rows;
};

// For a short time the measurement takes about 20 GiB of a GPU. Returns errors of printing.
// Exceptions of LibTorch pass through.
absl::StatusOr<MeasuredCeilings> MeasureCeilings(Session& session, const CeilingPlan& plan);

// Measures the main rates of a GPU (products in every precision, attention, copies) in about six
// seconds, without printing rows.
Ceilings MeasureMainCeilings(Session& session);

}  // namespace wan
