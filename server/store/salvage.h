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

// A row of `jobs` or `damaged_jobs`, as it stands in the database.
struct SalvagedJob {
  CellPlace place;
  std::string name;
  int64_t state = 0;
  bool reachable = false;  // by the tables' trees; others may be old versions of a row
};

// A row of `webhooks`.
struct SalvagedWebhook {
  std::string job;  // wan.v1.Job
  int64_t attempts = 0;
  int64_t due = 0;  // microseconds since the epoch
};

// The places of all rows that were found. Jobs are numbered as in the database.
struct Salvage {
  std::map<int64_t, SalvagedJob> jobs;
  std::map<int64_t, std::map<int64_t, CellPlace>> events;   // by job and sequence
  std::map<int64_t, std::map<std::string, JobFile>> files;  // by job and name
  std::map<int64_t, CellPlace> reports;
  std::map<int64_t, CellPlace> images;
  std::map<int64_t, CellPlace> webhooks;  // reports of ends, of which only the tree's are believed
  std::set<std::string> removed;          // names of jobs that were removed
  std::map<int64_t, std::string> names;   // of the jobs of all events
  int damaged_pages = 0;                  // that the trees lead to, as far as they can be followed
};

// Reads every page. Rows that the tables' trees reach are preferred. Other pages that are not free
// are read as well, because the page that led to them may be damaged; of these only rows are taken
// that are sound in themselves and that the trees do not have.
Salvage FindRows(const DatabasePages& pages);

// These read a row that FindRows has found; nullopt if it is damaged after all.
std::optional<StoredJob> ReadJob(const DatabasePages& pages, const CellPlace& place);
std::optional<wan::v1::Event> ReadEvent(const DatabasePages& pages, const CellPlace& place);
std::optional<wan::v1::JobReport> ReadReport(const DatabasePages& pages, const CellPlace& place);
std::optional<SalvagedWebhook> ReadWebhook(const DatabasePages& pages, const CellPlace& place);
std::optional<std::string> ReadBlob(const DatabasePages& pages, const CellPlace& place);

}  // namespace wan::server
