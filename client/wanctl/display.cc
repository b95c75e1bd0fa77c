#include "client/wanctl/display.h"

#include <optional>
#include <string>

namespace wan::client {
namespace {

// Moves the cursor to the start of the line, and erases the line.
constexpr char kClearLine[] = "\r\x1b[K";

}  // namespace

void Display::Show(const wan::v1::Event& event) {
  const std::optional<std::string> line = EventLine(event);
  if (columns_ == 0) {
    if (line) stream_ << *line << '\n' << std::flush;
    return;
  }
  bar_.Add(event);
  if (line && StaysOnTerminal(event)) {
    Clear();
    stream_ << *line << '\n' << std::flush;
    if (event.has_completed()) return;
  }
  ShowInPlace(bar_.Render(columns_));
}

void Display::ShowInPlace(std::string_view text) {
  if (columns_ == 0) return;
  stream_ << kClearLine << text << std::flush;
  drawn_ = true;
}

void Display::Clear() {
  if (drawn_) stream_ << kClearLine << std::flush;
  drawn_ = false;
}

}  // namespace wan::client
