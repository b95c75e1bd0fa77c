// Widens matrices that files keep as codes of 8 bits with scales in fp32: value = code * scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/formats/dtype.h"
#include "engine/formats/tensor_decoder.h"

namespace wan {

// The scales of a matrix. Scale [r / rows, c / columns] belongs to element [r, c].
struct CodeScales {
  // The size of the part of the matrix that shares one scale: the whole matrix, a row, or a tile.
  size_t rows = 1;
  size_t columns = 1;
  std::vector<float> values;  // row-major
};

// Returns whether this header decodes codes of `dtype`: F8_E4M3, F8_E5M2 or I8.
bool IsCode(DType dtype);

// Makes the decoder of a tensor of `dtype`, for which IsCode is true; its rows have `columns`
// elements. `scales` must cover every element. `scales` without values means that the codes are the
// values themselves.
std::shared_ptr<const TensorDecoder> MakeCodeDecoder(DType dtype, size_t columns,
                                                     CodeScales scales);

}  // namespace wan
