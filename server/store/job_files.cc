#include "server/store/job_files.h"

namespace wan::server {

void ReplaceJobFiles(SQLite::Database& db, int64_t number, std::span<const JobFile> files) {
  SQLite::Statement remove(db, "DELETE FROM job_files WHERE job = ?");
  remove.bind(1, number);
  remove.exec();
  SQLite::Statement insert(
      db,
      "INSERT INTO job_files (job, name, size_bytes, digest_key, sha256) VALUES (?, ?, ?, ?, ?)");
  for (const JobFile& file : files) {
    insert.bind(1, number);
    insert.bind(2, file.name);
    insert.bind(3, static_cast<int64_t>(file.size_bytes));
    insert.bind(4, file.digest_key);
    insert.bind(5, file.sha256);
    insert.exec();
    insert.reset();
  }
}

std::vector<JobFile> ReadJobFiles(SQLite::Database& db, std::string_view job) {
  SQLite::Statement select(db,
                           "SELECT name, size_bytes, digest_key, sha256 FROM job_files WHERE job = "
                           "(SELECT number FROM jobs WHERE name = ?) ORDER BY name");
  select.bind(1, std::string(job));
  std::vector<JobFile> files;
  while (select.executeStep()) {
    files.push_back({select.getColumn(0).getString(),
                     static_cast<uint64_t>(select.getColumn(1).getInt64()),
                     select.getColumn(2).getString(), select.getColumn(3).getString()});
  }
  return files;
}

}  // namespace wan::server
