#include "tests/support/moto_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

namespace wan::support {

bool MotoServer::IsThere() { return std::filesystem::exists(WAN_MOTO_PACKAGES); }

MotoServer::MotoServer() { Start(); }

MotoServer::~MotoServer() { Stop(); }

void MotoServer::Start() {
  std::array<int, 2> in{}, out{};
  ASSERT_EQ(pipe2(in.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(out.data(), O_CLOEXEC), 0);
  const std::string port = std::to_string(port_);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    execl(WAN_MOTO_PYTHON, WAN_MOTO_PYTHON, "-B", WAN_MOTO_SCRIPT, WAN_MOTO_PACKAGES, port.c_str(),
          nullptr);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  input_ = in[1];
  std::string line;
  for (char c = 0; read(out[0], &c, 1) == 1 && c != '\n';) line += c;
  close(out[0]);
  port_ = std::atoi(line.c_str());
  ASSERT_GT(port_, 0) << "moto does not start";
  const auto made = httplib::Client(endpoint()).Put("/videos");
  ASSERT_TRUE(made) << "moto does not answer";
  ASSERT_EQ(made->status, 200) << made->body;
}

void MotoServer::Stop() {
  if (pid_ < 0) return;
  close(input_);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void MotoServer::Restart() {
  Stop();
  Start();
}

std::string MotoServer::endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }

std::string MotoServer::Place(const std::string& prefix) const {
  return "s3://videos/" + prefix + "?endpoint=" + endpoint();
}

}  // namespace wan::support
