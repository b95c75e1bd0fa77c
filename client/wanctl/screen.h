// A terminal that a command redraws as a whole, and from which it reads single keys.
#pragma once

#include <memory>
#include <stop_token>
#include <string_view>

#include "absl/time/time.h"

namespace wan::client {

class Screen {
 public:
  struct Size {
    int rows = 0;
    int columns = 0;
  };

  virtual ~Screen() = default;

  // Returns the current size, which changes when the user resizes the window.
  virtual Size size() const = 0;
  // Replaces the content of the screen. `text` must not be larger than the size.
  virtual void Draw(std::string_view text) = 0;
  // Waits at most `limit` for a key and returns it; 0 if none was pressed or a stop was requested.
  virtual char AwaitKey(absl::Duration limit, const std::stop_token& stop) = 0;
};

// Returns the screen of the process's terminal; null if stdin or stdout is not a terminal. While
// the object exists, the terminal shows its alternate screen and delivers each key at once; the
// destructor restores the terminal.
std::unique_ptr<Screen> OpenTerminalScreen();

}  // namespace wan::client
