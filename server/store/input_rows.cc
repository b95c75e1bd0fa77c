#include "server/store/input_rows.h"

#include <memory>
#include <string>

#include "server/store/job_rows.h"

namespace wan::server {

void InsertInputs(SQLite::Database& db, int64_t number, const JobInputs& inputs) {
  if (inputs.image != nullptr) {
    SQLite::Statement insert(db, "INSERT INTO images (job, image) VALUES (?, ?)");
    insert.bind(1, number);
    BindBlob(insert, 2, *inputs.image);
    insert.exec();
  }
  for (const auto& [field, member] : kLatentsInputs) {
    const JobInputs::File& file = inputs.*member;
    if (file == nullptr || inputs.artifacts.contains(field)) continue;
    SQLite::Statement insert(db, "INSERT INTO latents (job, field, latents) VALUES (?, ?, ?)");
    insert.bind(1, number);
    insert.bind(2, std::string(field));
    BindBlob(insert, 3, *file);
    insert.exec();
  }
}

void DeleteInputs(SQLite::Database& db, int64_t number) {
  for (const char* const remove :
       {"DELETE FROM images WHERE job = ?", "DELETE FROM latents WHERE job = ?"}) {
    SQLite::Statement statement(db, remove);
    statement.bind(1, number);
    statement.exec();
  }
}

JobInputs ReadInputs(SQLite::Database& db, std::string_view job) {
  JobInputs inputs;
  SQLite::Statement image(
      db, "SELECT image FROM images WHERE job = (SELECT number FROM jobs WHERE name = ?)");
  image.bind(1, std::string(job));
  if (image.executeStep()) {
    inputs.image = std::make_shared<const std::string>(image.getColumn(0).getString());
  }
  SQLite::Statement latents(
      db,
      "SELECT field, latents FROM latents WHERE job = (SELECT number FROM jobs WHERE name = ?)");
  latents.bind(1, std::string(job));
  while (latents.executeStep()) {
    const std::string name = latents.getColumn(0).getString();
    for (const auto& [field, member] : kLatentsInputs) {
      if (field != name) continue;
      inputs.*member = std::make_shared<const std::string>(latents.getColumn(1).getString());
    }
  }
  return inputs;
}

}  // namespace wan::server
