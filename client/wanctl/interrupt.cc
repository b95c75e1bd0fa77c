#include "client/wanctl/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

namespace wan::client {
namespace {

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

InterruptHandler::InterruptHandler(int exit_code) : end_fd_(eventfd(0, EFD_CLOEXEC)) {
  const sigset_t signals = Signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC);
  thread_ = std::thread([this, exit_code] {
    pollfd fds[] = {{signal_fd_, POLLIN, 0}, {end_fd_, POLLIN, 0}};
    for (;;) {
      if (poll(fds, 2, -1) < 0) continue;
      if (fds[1].revents != 0) return;
      signalfd_siginfo info;
      if (read(signal_fd_, &info, sizeof(info)) != sizeof(info)) continue;
      // The program may take time to end after the first signal, so it ends at once at the second.
      if (!stop_.request_stop()) _exit(exit_code);
    }
  });
}

InterruptHandler::~InterruptHandler() {
  const uint64_t one = 1;
  if (write(end_fd_, &one, sizeof(one)) == sizeof(one)) thread_.join();
  close(signal_fd_);
  close(end_fd_);
}

}  // namespace wan::client
