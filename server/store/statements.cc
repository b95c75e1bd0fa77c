#include "server/store/statements.h"

namespace wan::server {

Statements::Use::Use(SQLite::Statement& statement) : statement_(statement) {
  statement_.clearBindings();
}

Statements::Use::~Use() { statement_.tryReset(); }

Statements::Use Statements::Get(const char* sql) {
  return Use(prepared_.try_emplace(sql, db_, sql).first->second);
}

}  // namespace wan::server
