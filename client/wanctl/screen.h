// A terminal that a command redraws as a whole and reads single keys from.
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

  // Its present size, which changes with the user's window.
  virtual Size size() const = 0;
  // Replaces the screen's content. `text` must fit the size.
  virtual void Draw(std::string_view text) = 0;
  // Waits for a key at most `limit`, and returns it; 0 if none came, or a stop was requested.
  virtual char AwaitKey(absl::Duration limit, const std::stop_token& stop) = 0;
};

// Returns the screen of the process's terminal, or null if stdin or stdout is none. As long as it
// exists, the terminal shows its alternate screen and passes keys on as they are typed; afterwards
// it is as before.
std::unique_ptr<Screen> OpenTerminalScreen();

}  // namespace wan::client
