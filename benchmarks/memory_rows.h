// Results of wan_bench memory: one video of one model under one limit is a row, and a file of rows,
// a JSON object a line, can be gone on with after a run that was stopped.
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

// What tells a row from others.
struct RowKey {
  std::string model;
  double limit_gib = 0;  // 0: none
  std::string shape;
  std::string residency;  // as configured, "transformer=host,vae=host"; empty: auto

  friend auto operator<=>(const RowKey&, const RowKey&) = default;
};

struct StageRow {
  Stage stage;
  uint64_t weights = 0;   // planned
  uint64_t estimate = 0;  // planned, weights included
  uint64_t peak = 0;      // the allocator's
  double seconds = 0;

  // Never below the peak, and within 5 % of it.
  bool IsRight() const;
};

struct MemoryRow {
  RowKey key;
  std::string refusal;  // not empty: nothing else is known
  std::string failure;  // how the job ended, if not well
  GenerationPlan plan;
  std::vector<StageRow> stages;
  std::vector<double> step_seconds;
  std::vector<double> loading_seconds;
  // Of the whole process, at the end of the stage where it was most: blocks that the allocator
  // keeps, and all that is gone from the device.
  uint64_t reserved = 0;
  uint64_t process = 0;
  // How often the allocator had to give blocks back before it found memory.
  int64_t retries = 0;
  // More than one: memory ended, and the decoding began again in tiles.
  int decodings = 0;

  uint64_t Peak() const;
  // Refused, or: the job ended well, every stage's estimate is right, and the process kept to the
  // limit.
  bool IsRight() const;
};

// The rows that a file has already, but those that failed; none if there is no such file.
std::set<RowKey> ReadRowKeys(const std::string& path);

absl::Status AppendRow(const std::string& path, const MemoryRow& row);

// Adds a row for each stage and one for the whole job.
absl::Status AddRows(const MemoryRow& row, Session& session);

}  // namespace wan
