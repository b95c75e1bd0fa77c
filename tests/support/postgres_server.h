// A PostgreSQL server of a test's own: in a temporary folder, on a Unix socket only.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <thread>

namespace wan {

// Runs the newest PostgreSQL of the distribution. A test that cannot start it fails, because the
// product is not tested without it. Processes that run as root start it as another user, because it
// refuses root. The server does not sync, so that tests are quick; a stop or a kill of it loses
// nothing all the same, only a crash of the machine would. Use it on the main thread: PostgreSQL
// ends with the thread that has started it.
class PostgresServer {
 public:
  // Creates an empty server, and starts it.
  PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;
  ~PostgresServer();

  // Creates an empty database, and returns its URL.
  std::string NewDatabase();

  // Runs statements in the database of this URL, as a superuser.
  void Execute(const std::string& url, const std::string& sql);
  // Returns the text of the first value of a query's result; empty if there is none.
  std::string Ask(const std::string& url, const std::string& sql);

  // Ends the server as 'pg_ctl stop -m immediate' does: all connections break, and the next start
  // recovers from the log.
  void StopAtOnce();
  void Start();

 private:
  void Create();

  std::filesystem::path folder_;
  std::filesystem::path programs_;
  pid_t process_ = -1;
  std::thread log_reader_;
  int databases_ = 0;
};

// A server that all tests of a program share.
PostgresServer& SharedPostgresServer();

}  // namespace wan
