// Child processes for tests with the real binaries.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace wan::e2e {

struct ProcessResult {
  int exit_code = -1;  // 128 + signal number if a signal ended it
  std::string out;
  std::string err;
};

// Runs a program to its end. `argv[0]` is the path; a bare name is looked up in PATH.
ProcessResult RunProcess(const std::vector<std::string>& argv);

// A running child whose stdout can be read line by line. stderr goes to a file.
class Process {
 public:
  Process(const std::vector<std::string>& argv, const std::string& stderr_path);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  // Kills it if it still runs.
  ~Process();

  // The next line of stdout, without its end; empty at the end of the stream.
  std::string ReadLine();
  // The rest of stdout, up to its end.
  std::string ReadAll();
  void Signal(int signal);
  // Waits for the end; the exit code as in ProcessResult.
  int Wait();
  pid_t pid() const { return pid_; }

 private:
  // Appends to buffer_; false at the end of the stream.
  bool ReadMore();

  pid_t pid_ = -1;
  int out_fd_ = -1;
  std::string buffer_;
};

// A new folder below the test's temporary folder, removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string ReadWholeFile(const std::string& path);

// Reads a file that another process writes, such as its log, until it has this text; the file.
std::string AwaitInFile(const std::string& path, const std::string& text);

}  // namespace wan::e2e
