// Transformer blocks that compute exactly in videos of quality high and fast.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wan {

// Some blocks of a transformer. The transformer's number of blocks need not be known yet.
class ExactBlocks {
 public:
  // Reads a list: "0", "4-5", "last", or several of these with commas between them. Blocks are
  // counted from 0. INVALID_ARGUMENT for any other text; the caller puts the name of a setting
  // before the message.
  static absl::StatusOr<ExactBlocks> Parse(std::string_view text);

  // Returns a text that Parse reads, with the blocks in the order in which Parse got them.
  std::string ToString() const;

  // Returns the indices of these blocks in a transformer that has `count` blocks, in rising order.
  // Blocks that the transformer does not have are left out.
  std::vector<int> In(int count) const;

  friend bool operator==(const ExactBlocks&, const ExactBlocks&) = default;

 private:
  // The last block has the number -1.
  struct Range {
    int first = 0;
    int last = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  std::vector<Range> ranges_;
};

}  // namespace wan
