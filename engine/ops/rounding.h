// Rounding of matrices to 8 bits, with a scale for each row. A row of activations (a token) and a
// row of weights (an output channel) have a scale each, so one large value costs only its own row
// precision.
//
//   scale[r] = max |x[r]| / 448
//   code[r, c] = e4m3(x[r, c] / scale[r])       448 is e4m3's largest value
//
// This form is for products at twice the rate of bf16. The error of a value is at most 1/16 of it,
// 2.65 % RMS.
//
//   scale[r] = max |x[r]| / 127
//   code[r, c] = round(x[r, c] / scale[r])      an int8
//
// This form is for weights that are restored before their product. All errors are at most 1/254 of
// the row's largest value: 1 % RMS of 4,096 normal numbers, because a row of weights has few values
// near its largest one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// The largest value of e4m3, at::kFloat8_e4m3fn.
inline constexpr double kLargestE4m3 = 448;
// The largest int8 code; -128 is not used.
inline constexpr double kLargestInt8 = 127;

struct RoundedRows {
  at::Tensor codes;   // e4m3 or int8 [rows, columns], contiguous in the last dimension
  at::Tensor scales;  // fp32 [rows]; the value of a code is code * scale

  bool defined() const { return codes.defined(); }
  // Returns `count` rows from `first` on; they share this object's memory.
  RoundedRows Rows(int64_t first, int64_t count) const;
  // Returns copies of the rows that `index` names.
  RoundedRows Select(const at::Tensor& index) const;
  // Returns the values in fp32.
  at::Tensor ToFloat() const;
};

// Returns room for the rounded rows of a matrix of `columns` columns in the rows of `memory` [rows,
// n], which is fp32 or bf16, as e4m3: row r's codes occupy its first bytes. So a matrix can be
// rounded in place, which takes only the scales' memory.
RoundedRows RoundedIn(const at::Tensor& memory, int64_t columns);

// Returns room for rounded rows in memory of its own. `code` is at::kFloat8_e4m3fn or at::kChar.
RoundedRows MakeRounded(int64_t rows, int64_t columns, at::Device device,
                        at::ScalarType code = at::kFloat8_e4m3fn);

// Rounds x [rows, columns], fp32 or bf16, to the dtype of out.codes; `out` may be RoundedIn(x,
// columns). A row of zeros gets the scale 0. NaN and infinity give NaN in every result that is
// computed with them.
void RoundRows(const at::Tensor& x, const RoundedRows& out);

// Writes the values of `x` to `out` [rows, columns], in its dtype.
void RestoreRows(const RoundedRows& x, at::Tensor& out);

// An implementation in plain ATen. It runs on a CPU, and tests compare the kernel with it.
void RoundRowsReference(const at::Tensor& x, const RoundedRows& out);

}  // namespace wan
