// Finds the rows of jobs in the pages of a damaged database.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "server/store/database_pages.h"
#include "server/store/job_store.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {

// A row of the table jobs or damaged_jobs.
struct SalvagedJob {
  CellPlace place;
  std::string name;
  int64_t state = 0;
  // Whether the table's tree reaches the row; a row that it does not reach may be an old version.
  bool reachable = false;
};

// A row of the table webhooks.
struct SalvagedWebhook {
  std::string job;  // a serialized wan.v1.Job
  int64_t attempts = 0;
  int64_t due = 0;  // microseconds since the epoch
};

// The places of all rows that were found. The keys are the jobs' numbers in the database.
struct Salvage {
  std::map<int64_t, SalvagedJob> jobs;
  // First key: the job's number; second key: the event's sequence.
  std::map<int64_t, std::map<int64_t, CellPlace>> events;
  // First key: the job's number; second key: the file's name.
  std::map<int64_t, std::map<std::string, JobFile>> files;
  std::map<int64_t, CellPlace> reports;
  std::map<int64_t, CellPlace> images;
  // First key: the job's number; second key: the request's field.
  std::map<int64_t, std::map<std::string, CellPlace>> latents;
  std::map<int64_t, CellPlace> webhooks;  // only the rows that the table's tree reaches
  std::set<std::string> removed;          // the names of removed jobs
  std::map<int64_t, std::string> names;   // the names of the jobs to which the events belong
  int damaged_pages = 0;  // number of damaged pages among those that the trees reach
};

// Reads every page of the database. If there are several versions of a row, prefers the one that
// the table's tree reaches. Also reads the pages that are neither free nor in a tree, because the
// page that links to them may be damaged; from these pages takes undamaged rows that the trees do
// not contain.
Salvage FindRows(const DatabasePages& pages);

// ReadJob and the functions below read a row that FindRows has found; they return nullopt if the
// row is damaged.
std::optional<StoredJob> ReadJob(const DatabasePages& pages, const CellPlace& place);
std::optional<wan::v1::Event> ReadEvent(const DatabasePages& pages, const CellPlace& place);
std::optional<wan::v1::JobReport> ReadReport(const DatabasePages& pages, const CellPlace& place);
std::optional<SalvagedWebhook> ReadWebhook(const DatabasePages& pages, const CellPlace& place);
std::optional<std::string> ReadImage(const DatabasePages& pages, const CellPlace& place);
std::optional<std::string> ReadLatents(const DatabasePages& pages, const CellPlace& place);

}  // namespace wan::server
