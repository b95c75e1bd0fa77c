#include "tests/e2e/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

namespace wan::e2e {
namespace {

[[noreturn]] void Exec(const std::vector<std::string>& argv) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

int ExitCode(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

}  // namespace

ProcessResult RunProcess(const std::vector<std::string>& argv) {
  const TemporaryFolder folder;
  Process process(argv, folder.File("stderr"));
  ProcessResult result;
  result.out = process.ReadAll();
  result.exit_code = process.Wait();
  result.err = ReadWholeFile(folder.File("stderr"));
  return result;
}

Process::Process(const std::vector<std::string>& argv, const std::string& stderr_path) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) std::abort();
  pid_ = fork();
  if (pid_ == 0) {
    dup2(out[1], STDOUT_FILENO);
    const int err = open(stderr_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(err, STDERR_FILENO);
    Exec(argv);
  }
  close(out[1]);
  out_fd_ = out[0];
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    Wait();
  }
  close(out_fd_);
}

bool Process::ReadMore() {
  char chunk[4096];
  const ssize_t count = read(out_fd_, chunk, sizeof(chunk));
  if (count <= 0) return false;
  buffer_.append(chunk, static_cast<size_t>(count));
  return true;
}

std::string Process::ReadLine() {
  while (buffer_.find('\n') == std::string::npos) {
    if (!ReadMore()) return std::exchange(buffer_, std::string());
  }
  const size_t end = buffer_.find('\n');
  const std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return line;
}

std::string Process::ReadAll() {
  while (ReadMore()) {
  }
  return std::exchange(buffer_, std::string());
}

void Process::Signal(int signal) { kill(pid_, signal); }

int Process::Wait() {
  int status = 0;
  if (pid_ <= 0 || waitpid(pid_, &status, 0) != pid_) return -1;
  pid_ = -1;
  return ExitCode(status);
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = testing::TempDir() + "wan_e2e_XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ReadWholeFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

std::string AwaitInFile(const std::string& path, const std::string& text) {
  for (;;) {
    std::string file = ReadWholeFile(path);
    file.erase(file.rfind('\n') + 1);  // leave out a line that is still being written
    if (file.find(text) != std::string::npos) return file;
  }
}

}  // namespace wan::e2e
