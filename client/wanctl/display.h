// Shows the progress of a job: on a terminal as a bar that is redrawn in place, otherwise as plain
// lines.
#pragma once

#include <ostream>
#include <string_view>

#include "client/wanctl/progress.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

class Display {
 public:
  // `columns` is the width of the terminal, 0 if `stream` is not a terminal. `stream` must outlive
  // this object.
  Display(std::ostream& stream, int columns) : stream_(stream), columns_(columns) {}
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;
  ~Display() { Clear(); }

  // Shows an event; call Show for every event of a job, in the order of the events.
  void Show(const wan::v1::Event& event);

  // Redraws the last line of the terminal with `text`; does nothing if there is no terminal.
  void ShowInPlace(std::string_view text);

  // Erases the line that ShowInPlace has drawn, if there is one.
  void Clear();

 private:
  std::ostream& stream_;
  const int columns_;
  ProgressBar bar_;
  bool drawn_ = false;
};

}  // namespace wan::client
