// Results of wan_bench memory. A row is one video of one model under one limit. A file of rows has
// a JSON object per line.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/session.h"
#include "engine/api/generation.h"

namespace wan {

// Identifies a row.
struct RowKey {
  std::string model;
  double limit_gib = 0;  // 0: no limit
  std::string shape;
  std::string residency;  // configured policies, "transformer=host,vae=host"; empty: auto

  friend auto operator<=>(const RowKey&, const RowKey&) = default;
};

struct StageRow {
  Stage stage;
  uint64_t weights = 0;   // planned bytes of weights
  uint64_t estimate = 0;  // planned bytes, including weights
  uint64_t peak = 0;      // the allocator's peak
  double seconds = 0;

  // Whether the estimate is at least the peak and within 5 % of it.
  bool IsRight() const;
};

struct MemoryRow {
  RowKey key;
  std::string refusal;  // reason if the job was refused; all other fields are then unset
  std::string failure;  // the job's error, if it failed
  GenerationPlan plan;
  std::vector<StageRow> stages;
  std::vector<double> step_seconds;
  std::vector<double> loading_seconds;
  // Bytes of the whole process at the end of its largest stage: blocks that the allocator keeps,
  // and all device memory in use.
  uint64_t reserved = 0;
  uint64_t process = 0;
  // How often the allocator had to release blocks before it found memory.
  int64_t retries = 0;
  // More than one: memory ran out, and decoding began again in tiles.
  int decodings = 0;

  uint64_t Peak() const;
  // True if the job was refused, or if it succeeded with right estimates of all stages and within
  // the limit.
  bool IsRight() const;
};

// Reads those rows of a file that did not fail; none if there is no file.
std::set<RowKey> ReadRowKeys(const std::string& path);

absl::Status AppendRow(const std::string& path, const MemoryRow& row);

// Adds a row for each stage and one for the whole job.
absl::Status AddRows(const MemoryRow& row, Session& session);

}  // namespace wan
