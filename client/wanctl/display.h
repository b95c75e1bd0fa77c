// Shows a job's progress: on a terminal a bar that is redrawn in place, elsewhere plain lines.
#pragma once

#include <ostream>
#include <string_view>

#include "client/wanctl/progress.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

class Display {
 public:
  // `columns` of the terminal, 0 where there is none. `stream` must outlive it.
  Display(std::ostream& stream, int columns) : stream_(stream), columns_(columns) {}
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;
  ~Display() { Clear(); }

  void Show(const wan::v1::Event& event);

  // Replaces what is shown in place; nothing without a terminal.
  void ShowInPlace(std::string_view text);

  // Takes away what is shown in place.
  void Clear();

 private:
  std::ostream& stream_;
  const int columns_;
  ProgressBar bar_;
  bool drawn_ = false;
};

}  // namespace wan::client
