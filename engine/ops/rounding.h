// Rounding of matrices to 8 bits, with a scale for each row. Each row of activations (a token) and
// each row of weights (an output channel) has a scale, so a large value lowers the precision only
// of its row.
//
//   scale[r] = max |x[r]| / 448
//   code[r, c] = e4m3(x[r, c] / scale[r])       448 is e4m3's largest value
//
// Codes in e4m3 are for products at twice the rate of bf16. The error of a value is at most 1/16 of
// it, 2.65 % RMS.
//
//   scale[r] = max |x[r]| / 127
//   code[r, c] = round(x[r, c] / scale[r])      an int8
//
// Codes in int8 are for weights that are converted back before their product. All errors are at
// most 1/254 of the row's largest value. For 4,096 normal numbers that is 1 % RMS.
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
  // Returns copies of the rows whose numbers `index` lists.
  RoundedRows Select(const at::Tensor& index) const;
  // Returns the values in fp32.
  at::Tensor ToFloat() const;
};

// Returns room for the rounded rows of a matrix of `columns` columns in the rows of `memory` [rows,
// n], which is fp32 or bf16, as e4m3: row r's codes occupy its first bytes. So rounding a matrix in
// place takes new memory only for the scales.
RoundedRows RoundedIn(const at::Tensor& memory, int64_t columns);

// Returns new, uninitialised memory for rounded rows. `code` is at::kFloat8_e4m3fn or at::kChar.
RoundedRows MakeRounded(int64_t rows, int64_t columns, at::Device device,
                        at::ScalarType code = at::kFloat8_e4m3fn);

// Rounds x [rows, columns], fp32 or bf16, to the dtype of out.codes; `out` may be RoundedIn(x,
// columns). A row of zeros gets the scale 0. A NaN or infinity in x makes every result that is
// computed with its row NaN.
void RoundRows(const at::Tensor& x, const RoundedRows& out);

// Converts the codes of `x` to values, and writes them to `out` [rows, columns] in the dtype of
// `out`.
void RestoreRows(const RoundedRows& x, at::Tensor& out);

// An implementation in plain ATen. This implementation runs on a CPU, and tests compare the kernel
// with it.
void RoundRowsReference(const at::Tensor& x, const RoundedRows& out);

}  // namespace wan
