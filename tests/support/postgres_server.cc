#include "tests/support/postgres_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

namespace wan {
namespace {

namespace fs = std::filesystem;

// The newest folder of programs that the distribution has, /usr/lib/postgresql/15/bin.
fs::path FindPrograms() {
  fs::path newest;
  int newest_version = 0;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", missing)) {
    const int version = std::atoi(entry.path().filename().c_str());
    if (version <= newest_version || !fs::exists(entry.path() / "bin" / "initdb")) continue;
    newest = entry.path() / "bin";
    newest_version = version;
  }
  return newest;
}

// The user that runs PostgreSQL for root; null for other users.
const passwd* Unprivileged() {
  if (geteuid() != 0) return nullptr;
  const passwd* const user = getpwnam("postgres");
  return user != nullptr ? user : getpwnam("nobody");
}

// Starts a program whose output goes to the returned stream.
std::pair<pid_t, FILE*> Spawn(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
  arguments.push_back(nullptr);
  const passwd* const user = Unprivileged();
  int out[2] = {-1, -1};
  if (pipe2(out, O_CLOEXEC) != 0) std::abort();
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(out[1], STDERR_FILENO);
    setpgid(0, 0);  // a Ctrl+C is for the test, which then ends this program
    if (user != nullptr && (setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)) _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() != parent) _exit(126);  // it ended before that call
    setenv("LC_ALL", "C", 1);
    if (chdir("/") != 0) _exit(126);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(out[1]);
  return {child, fdopen(out[0], "r")};
}

std::string ReadLine(FILE* stream) {
  std::string line;
  for (int next = std::fgetc(stream); next != EOF; next = std::fgetc(stream)) {
    line.push_back(static_cast<char>(next));
    if (next == '\n') break;
  }
  return line;
}

// Ends the test, whose destructors do not run then.
[[noreturn]] void Fail(const std::string& what, const fs::path& folder = {}) {
  std::error_code left;
  if (!folder.empty()) fs::remove_all(folder, left);
  ADD_FAILURE() << what;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

}  // namespace

PostgresServer::PostgresServer() : programs_(FindPrograms()) {
  if (programs_.empty()) {
    Fail("PostgreSQL is not in /usr/lib/postgresql; scripts/setup installs it");
  }
  std::string folder = "/tmp/wan-postgres-XXXXXX";  // a socket's path must be short
  if (mkdtemp(folder.data()) == nullptr) Fail("cannot create " + folder);
  folder_ = folder;
  if (const passwd* const user = Unprivileged();
      user != nullptr && chown(folder.c_str(), user->pw_uid, user->pw_gid) != 0) {
    Fail("cannot give " + folder + " to " + user->pw_name, folder_);
  }
  Create();
  Start();
}

PostgresServer::~PostgresServer() {
  if (process_ > 0) StopAtOnce();
  std::error_code left;
  fs::remove_all(folder_, left);
}

void PostgresServer::Create() {
  const auto [child, out] =
      Spawn({programs_ / "initdb", "-D", folder_ / "data", "-U", "wan", "-A", "trust", "-E", "UTF8",
             "--locale=C", "--no-sync", "--no-instructions"});
  std::string said;
  for (std::string line = ReadLine(out); !line.empty(); line = ReadLine(out)) said += line;
  std::fclose(out);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) Fail("initdb failed: " + said, folder_);
}

void PostgresServer::Start() {
  const auto [child, out] =
      Spawn({programs_ / "postgres", "-D", folder_ / "data", "-k", folder_, "-c",
             "listen_addresses=", "-c", "fsync=off", "-c", "full_page_writes=off", "-c",
             "shared_buffers=16MB", "-c", "max_connections=60"});
  process_ = child;
  std::string said;
  for (;;) {
    const std::string line = ReadLine(out);
    if (line.empty()) Fail("PostgreSQL does not start: " + said, folder_);
    said += line;
    if (line.find("ready to accept connections") != std::string::npos) break;
  }
  log_reader_ = std::thread([stream = out] {
    while (!ReadLine(stream).empty()) {
    }
    std::fclose(stream);
  });
}

void PostgresServer::StopAtOnce() {
  kill(process_, SIGQUIT);
  waitpid(process_, nullptr, 0);
  process_ = -1;
  log_reader_.join();
}

std::string PostgresServer::NewDatabase() {
  const std::string name = "test" + std::to_string(++databases_);
  const auto url = [this](const std::string& database) {
    return "postgresql://wan@/" + database + "?host=" + folder_.string();
  };
  Execute(url("postgres"), "CREATE DATABASE " + name);
  return url(name);
}

void PostgresServer::Execute(const std::string& url, const std::string& sql) { Ask(url, sql); }

std::string PostgresServer::Ask(const std::string& url, const std::string& sql) {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectdb(url.c_str()),
                                                                &PQfinish);
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection.get(), sql.c_str()),
                                                             &PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  EXPECT_TRUE(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
      << sql << ": " << PQerrorMessage(connection.get());
  return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
}

PostgresServer& SharedPostgresServer() {
  static PostgresServer server;
  return server;
}

}  // namespace wan
