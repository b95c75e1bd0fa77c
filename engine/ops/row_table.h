// Tables of vectors, one of which applies to each row of an activation.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/index_select.h>

namespace wan {

// Takes a table [n, dim] and returns a tensor that broadcasts against [rows, dim]: the table itself
// if it has one row, otherwise the row index[r] for each r.
inline at::Tensor ExpandRows(const at::Tensor& table, const at::Tensor& index) {
  return table.size(0) == 1 ? table : at::index_select(table, 0, index);
}

}  // namespace wan
