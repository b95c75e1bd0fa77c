// Tables of vectors of which every row of an activation uses one.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/index_select.h>

namespace wan {

// table [n, dim] -> something that broadcasts against [rows, dim]: the table itself if it has one
// row, else the row index[r] for each r.
inline at::Tensor ExpandRows(const at::Tensor& table, const at::Tensor& index) {
  return table.size(0) == 1 ? table : at::index_select(table, 0, index);
}

}  // namespace wan
