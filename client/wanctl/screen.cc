#include "client/wanctl/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"

namespace wan::client {
namespace {

// The codes switch to the alternate screen and hide the cursor, and back.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
// The longest wait for a key; then the loop checks whether it must stop. The signal that asks for
// the stop may wake another thread, so it does not always end the wait.
constexpr absl::Duration kSlice = absl::Milliseconds(100);

void WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

class TerminalScreen final : public Screen {
 public:
  explicit TerminalScreen(const termios& before) : before_(before) {
    termios raw = before;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    WriteAll(kEnter);
  }
  ~TerminalScreen() override {
    WriteAll(kLeave);
    tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

  Size size() const override {
    winsize size = {};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {24, 80};
    return {size.ws_row, size.ws_col};
  }

  void Draw(std::string_view text) override {
    // Erase the rest of each line and everything below the last line; clearing the screen first
    // would make it flicker.
    const std::string lines =
        absl::StrReplaceAll(absl::string_view(text.data(), text.size()), {{"\n", "\x1b[K\r\n"}});
    WriteAll("\x1b[H" + lines + "\x1b[J");
  }

  char AwaitKey(absl::Duration limit, const std::stop_token& stop) override {
    const absl::Time end = absl::Now() + limit;
    while (!stop.stop_requested()) {
      const absl::Duration left = std::min(end - absl::Now(), kSlice);
      if (left <= absl::ZeroDuration()) return 0;
      pollfd input{STDIN_FILENO, POLLIN, 0};
      if (poll(&input, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) continue;
      char key = 0;
      // If the terminal has gone, behave as if 'q' (quit) were pressed.
      return read(STDIN_FILENO, &key, 1) == 1 ? key : 'q';
    }
    return 0;
  }

 private:
  const termios before_;
};

}  // namespace

std::unique_ptr<Screen> OpenTerminalScreen() {
  termios settings = {};
  if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &settings) != 0) return nullptr;
  return std::make_unique<TerminalScreen>(settings);
}

}  // namespace wan::client
