#include "server/store/salvage.h"

#include <algorithm>
#include <utility>

#include "server/conversion/job_inputs.h"

namespace wan::server {
namespace {

constexpr std::string_view kJobPrefix = "jobs/";
constexpr std::string_view kReportSuffix = "/report";
constexpr size_t kLongestName = 256;
// The length of a hex SHA-256; digest keys are recognized by it.
constexpr size_t kDigestKeyBytes = 64;
// No tree of 2^32 pages is as deep as this.
constexpr int kDeepest = 40;

enum class Table {
  kOther,
  kJobs,
  kEvents,
  kFiles,
  kReports,
  kImages,
  kLatents,
  kWebhooks,
  kRemoved
};

Table TableOf(std::string_view name) {
  if (name == "jobs" || name == "damaged_jobs") return Table::kJobs;
  if (name == "events") return Table::kEvents;
  if (name == "job_files") return Table::kFiles;
  if (name == "reports") return Table::kReports;
  if (name == "images") return Table::kImages;
  if (name == "latents") return Table::kLatents;
  if (name == "webhooks") return Table::kWebhooks;
  if (name == "removed_jobs") return Table::kRemoved;
  return Table::kOther;
}

// Returns the value of a column; null if it is missing or of another type.
template <typename Value>
const Value* Column(const DatabaseRecord& record, size_t column) {
  return column < record.values.size() ? std::get_if<Value>(&record.values[column]) : nullptr;
}

bool IsName(const std::string* text) {
  return text != nullptr && text->starts_with(kJobPrefix) && text->size() <= kLongestName;
}

// Returns how far a job has come; of two versions of a row, the one with more progress is newer.
int Progress(int64_t state) {
  if (IsFinal(static_cast<wan::v1::JobState>(state))) return 2;
  return state == wan::v1::JOB_STATE_RUNNING ? 1 : 0;
}

// Returns the bytes in a column of a row; nullopt if the row is damaged.
std::optional<std::string> ReadBlob(const DatabasePages& pages, const CellPlace& place,
                                    size_t column) {
  std::optional<DatabaseRecord> record = pages.ReadRecord(place);
  if (!record.has_value() || Column<std::string>(*record, column) == nullptr) return std::nullopt;
  return std::get<std::string>(std::move(record->values[column]));
}

class Finder {
 public:
  explicit Finder(const DatabasePages& pages) : pages_(pages) {}

  Salvage Find() {
    Walk(1, kDeepest, [this](const CellPlace& place) { TakeTable(place); });
    for (const auto& [root, table] : roots_) {
      Walk(root, kDeepest, [this, table = table](const CellPlace& place) {
        const std::optional<DatabaseRecord> record =
            table == Table::kOther ? std::nullopt : pages_.ReadRecord(place);
        if (record.has_value()) Take(table, place, *record, /*reachable=*/true);
      });
    }
    for (const uint32_t free : pages_.FreePages()) visited_.insert(free);
    for (uint32_t number = 1; number <= pages_.count(); ++number) {
      if (visited_.contains(number)) continue;
      const std::optional<BtreePage> page = pages_.ReadPage(number);
      if (!page.has_value()) continue;
      for (const CellPlace& place : page->cells) {
        const std::optional<DatabaseRecord> record = pages_.ReadRecord(place);
        if (!record.has_value()) continue;
        const Table table = Recognize(page->kind == BtreePage::Kind::kLeafTable, place, *record);
        if (table != Table::kOther) Take(table, place, *record, /*reachable=*/false);
      }
    }
    return std::move(found_);
  }

 private:
  // Calls `take` with every record in the tree below a page.
  template <typename Taker>
  void Walk(uint32_t number, int levels, const Taker& take) {
    if (levels == 0 || !visited_.insert(number).second) return;
    const std::optional<BtreePage> page = pages_.ReadPage(number);
    if (!page.has_value() || page->damaged) ++found_.damaged_pages;
    if (!page.has_value()) {
      visited_.erase(number);
      return;
    }
    for (const CellPlace& place : page->cells) take(place);
    for (const uint32_t child : page->children) Walk(child, levels - 1, take);
  }

  // Records the root page of a table or index; `place` is its row of the schema: type, name,
  // tbl_name, rootpage, sql.
  void TakeTable(const CellPlace& place) {
    const std::optional<DatabaseRecord> record = pages_.ReadRecord(place);
    if (!record.has_value()) return;
    const auto* const type = Column<std::string>(*record, 0);
    const auto* const name = Column<std::string>(*record, 1);
    const auto* const root = Column<int64_t>(*record, 3);
    if (type == nullptr || name == nullptr || root == nullptr || *root <= 1) return;
    roots_.emplace_back(static_cast<uint32_t>(*root),
                        *type == "table" ? TableOf(*name) : Table::kOther);
  }

  // Guesses from the columns of a record to which table it belongs.
  Table Recognize(bool table, const CellPlace& place, const DatabaseRecord& record) const {
    if (!table && record.values.size() == 4 && Column<int64_t>(record, 2) != nullptr) {
      const auto* const key = Column<std::string>(record, 3);
      return key != nullptr && key->size() == kDigestKeyBytes ? Table::kFiles : Table::kOther;
    }
    if (!table) return ReadEvent(pages_, place).has_value() ? Table::kEvents : Table::kOther;
    if (IsLatents(record)) return Table::kLatents;
    const auto* const second = Column<std::string>(record, 1);
    if (second == nullptr) return Table::kOther;
    if (record.values.size() > 2) {
      return ReadJob(pages_, place).has_value() ? Table::kJobs : Table::kOther;
    }
    if (ReadReport(pages_, place).has_value()) return Table::kReports;
    return IsName(second) ? Table::kRemoved : Table::kImages;
  }

  static bool IsLatents(const DatabaseRecord& record) {
    const auto* const field = Column<std::string>(record, 2);
    return record.values.size() == 4 && field != nullptr &&
           std::any_of(kLatentsInputs.begin(), kLatentsInputs.end(),
                       [&](const auto& input) { return input.first == *field; });
  }

  void Take(Table table, const CellPlace& place, const DatabaseRecord& record, bool reachable) {
    const auto* const second = Column<std::string>(record, 1);
    switch (table) {
      case Table::kJobs: {
        const auto* const state = Column<int64_t>(record, 2);
        if (!IsName(second) || state == nullptr) return;
        const SalvagedJob job{place, *second, *state, reachable};
        const auto [known, added] = found_.jobs.emplace(record.rowid, job);
        if (!added && !known->second.reachable &&
            Progress(job.state) > Progress(known->second.state)) {
          known->second = job;
        }
        return;
      }
      case Table::kEvents: {
        const auto* const job = Column<int64_t>(record, 0);
        const auto* const sequence = Column<int64_t>(record, 1);
        if (job == nullptr || sequence == nullptr) return;
        found_.events[*job].emplace(*sequence, place);
        if (found_.names.contains(*job)) return;
        const std::optional<wan::v1::Event> event = ReadEvent(pages_, place);
        if (event.has_value() && !event->job().empty()) found_.names[*job] = event->job();
        return;
      }
      case Table::kFiles: {
        const auto* const job = Column<int64_t>(record, 0);
        const auto* const size = Column<int64_t>(record, 2);
        const auto* const key = Column<std::string>(record, 3);
        if (job == nullptr || second == nullptr || size == nullptr || key == nullptr) return;
        // Rows of older schemas have no digest.
        const auto* const sha256 = Column<std::string>(record, 4);
        found_.files[*job].emplace(*second, JobFile{*second, static_cast<uint64_t>(*size), *key,
                                                    sha256 == nullptr ? "" : *sha256});
        return;
      }
      case Table::kReports:
        found_.reports.emplace(record.rowid, place);
        return;
      case Table::kImages:
        found_.images.emplace(record.rowid, place);
        return;
      case Table::kLatents: {
        const auto* const job = Column<int64_t>(record, 1);
        const auto* const field = Column<std::string>(record, 2);
        if (job != nullptr && field != nullptr) found_.latents[*job].emplace(*field, place);
        return;
      }
      case Table::kWebhooks:
        found_.webhooks.emplace(record.rowid, place);
        return;
      case Table::kRemoved:
        if (IsName(second)) found_.removed.insert(*second);
        return;
      case Table::kOther:
        return;
    }
  }

  const DatabasePages& pages_;
  Salvage found_;
  std::set<uint32_t> visited_;
  std::vector<std::pair<uint32_t, Table>> roots_;
};

}  // namespace

Salvage FindRows(const DatabasePages& pages) { return Finder(pages).Find(); }

std::optional<StoredJob> ReadJob(const DatabasePages& pages, const CellPlace& place) {
  const std::optional<DatabaseRecord> record = pages.ReadRecord(place);
  if (!record.has_value()) return std::nullopt;
  const auto* const name = Column<std::string>(*record, 1);
  const auto* const state = Column<int64_t>(*record, 2);
  const auto* const digest = Column<std::string>(*record, 4);
  const auto* const tied = Column<int64_t>(*record, 5);
  const auto* const bytes = Column<std::string>(*record, 6);
  if (!IsName(name) || state == nullptr || digest == nullptr || tied == nullptr ||
      bytes == nullptr) {
    return std::nullopt;
  }
  StoredJob stored;
  if (!stored.job.ParseFromString(*bytes) || stored.job.name() != *name ||
      stored.job.state() != *state || *state == wan::v1::JOB_STATE_UNSPECIFIED ||
      !wan::v1::JobState_IsValid(stored.job.state())) {
    return std::nullopt;
  }
  stored.request_digest = *digest;
  stored.tied_to_caller = *tied != 0;
  return stored;
}

std::optional<wan::v1::Event> ReadEvent(const DatabasePages& pages, const CellPlace& place) {
  const std::optional<DatabaseRecord> record = pages.ReadRecord(place);
  if (!record.has_value() || record->values.size() != 3) return std::nullopt;
  const auto* const job = Column<int64_t>(*record, 0);
  const auto* const sequence = Column<int64_t>(*record, 1);
  const auto* const bytes = Column<std::string>(*record, 2);
  wan::v1::Event event;
  if (job == nullptr || sequence == nullptr || bytes == nullptr || !event.ParseFromString(*bytes) ||
      event.sequence() != *sequence || *sequence < 1) {
    return std::nullopt;
  }
  return event;
}

std::optional<wan::v1::JobReport> ReadReport(const DatabasePages& pages, const CellPlace& place) {
  const std::optional<std::string> bytes = ReadBlob(pages, place, 1);
  wan::v1::JobReport report;
  if (!bytes.has_value() || !report.ParseFromString(*bytes) ||
      !report.name().ends_with(kReportSuffix)) {
    return std::nullopt;
  }
  return report;
}

std::optional<SalvagedWebhook> ReadWebhook(const DatabasePages& pages, const CellPlace& place) {
  const std::optional<DatabaseRecord> record = pages.ReadRecord(place);
  if (!record.has_value()) return std::nullopt;
  const auto* const job = Column<std::string>(*record, 1);
  const auto* const attempts = Column<int64_t>(*record, 2);
  const auto* const due = Column<int64_t>(*record, 3);
  if (job == nullptr || attempts == nullptr || due == nullptr ||
      !wan::v1::Job().ParseFromString(*job)) {
    return std::nullopt;
  }
  return SalvagedWebhook{*job, *attempts, *due};
}

std::optional<std::string> ReadImage(const DatabasePages& pages, const CellPlace& place) {
  return ReadBlob(pages, place, 1);
}

std::optional<std::string> ReadLatents(const DatabasePages& pages, const CellPlace& place) {
  return ReadBlob(pages, place, 3);
}

}  // namespace wan::server
