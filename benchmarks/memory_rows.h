// The results of wan_bench memory. A row has the results for one video of one model under one
// memory limit. A file of rows has one JSON object in each line.
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

// The properties that identify a row.
struct RowKey {
  std::string model;
  double limit_gib = 0;  // bytes of device memory; 0: no limit
  std::string shape;
  std::string residency;  // set by the user, "transformer=host,vae=host"; empty: auto

  friend auto operator<=>(const RowKey&, const RowKey&) = default;
};

struct StageRow {
  Stage stage;
  uint64_t weights = 0;   // bytes of weights according to the plan
  uint64_t estimate = 0;  // bytes in total according to the plan, including weights
  uint64_t peak = 0;      // the highest number of bytes that the allocator held
  double seconds = 0;

  // Returns whether the estimate is at least the peak and at most 5 % above it.
  bool IsRight() const;
};

struct MemoryRow {
  RowKey key;
  std::string refusal;  // why the job was refused; if set, all other fields are unset
  std::string failure;  // the error of the job, if it failed
  GenerationPlan plan;
  std::vector<StageRow> stages;
  std::vector<double> step_seconds;
  std::vector<double> loading_seconds;
  // Memory at the end of the stage that needs most memory: the bytes of blocks that the allocator
  // keeps, and of all device memory in use.
  uint64_t reserved = 0;
  uint64_t process = 0;
  // How many times the allocator had to release blocks before it found memory.
  int64_t retries = 0;
  // How many times decoding began. If decoding began more than once, memory ran out and decoding
  // began again in tiles.
  int decodings = 0;

  uint64_t Peak() const;
  // Returns true if the job was refused. Also returns true if the job succeeded within the limit
  // and the estimates of all stages are right.
  bool IsRight() const;
};

// Reads the rows of a file, without the rows that failed. Returns no rows if the file does not
// exist.
std::set<RowKey> ReadRowKeys(const std::string& path);

absl::Status AppendRow(const std::string& path, const MemoryRow& row);

// Adds one row for each stage, and one for the whole job.
absl::Status AddRows(const MemoryRow& row, Session& session);

}  // namespace wan
