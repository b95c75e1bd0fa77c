// Finds the rows of jobs in the pages of a damaged database.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/store/database_pages.h"
#include "server/store/job_store.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {

// A row of `jobs` or `damaged_jobs`.
struct SalvagedJob {
  CellPlace place;
  std::string name;
  int64_t state = 0;
  bool reachable = false;  // through the table's tree; else it may be an old version
};

// A row of `webhooks`.
struct SalvagedWebhook {
  std::string job;  // wan.v1.Job
  int64_t attempts = 0;
  int64_t due = 0;  // microseconds since the epoch
};

// The positions of all rows found. The keys are the jobs' numbers in the database.
struct Salvage {
  std::map<int64_t, SalvagedJob> jobs;
  std::map<int64_t, std::map<int64_t, CellPlace>> events;   // by job and sequence
  std::map<int64_t, std::map<std::string, JobFile>> files;  // by job and name
  std::map<int64_t, CellPlace> reports;
  std::map<int64_t, CellPlace> images;
  std::map<int64_t, CellPlace> webhooks;  // only rows that the table's tree reaches
  std::set<std::string> removed;          // names of removed jobs
  std::map<int64_t, std::string> names;   // names of the jobs of all events
  int damaged_pages = 0;                  // among those that the trees reach
};

// Reads every page. Prefers rows that the tables' trees reach. Also reads the other pages that are
// not free, because the page that links to them may be damaged; from these it takes undamaged rows
// that the trees do not contain.
Salvage FindRows(const DatabasePages& pages);

// Read a row that FindRows has found; nullopt if it is damaged.
std::optional<StoredJob> ReadJob(const DatabasePages& pages, const CellPlace& place);
std::optional<wan::v1::Event> ReadEvent(const DatabasePages& pages, const CellPlace& place);
std::optional<wan::v1::JobReport> ReadReport(const DatabasePages& pages, const CellPlace& place);
std::optional<SalvagedWebhook> ReadWebhook(const DatabasePages& pages, const CellPlace& place);
std::optional<std::string> ReadBlob(const DatabasePages& pages, const CellPlace& place);

}  // namespace wan::server
