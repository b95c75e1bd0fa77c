#include "engine/formats/scaled_codes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/formats/small_floats.h"

namespace wan {
namespace {

using CodeValues = std::array<float, 256>;

CodeValues MakeValues(DType dtype) {
  CodeValues values{};
  for (size_t code = 0; code < values.size(); ++code) {
    const auto byte = static_cast<uint8_t>(code);
    values[code] = dtype == DType::kFloat8E4M3   ? FromE4M3(byte)
                   : dtype == DType::kFloat8E5M2 ? FromE5M2(byte)
                                                 : static_cast<float>(static_cast<int8_t>(byte));
  }
  return values;
}

std::string NameOfForm(DType dtype, const CodeScales& scales) {
  return absl::StrCat(std::string(DTypeName(dtype)), scales.values.empty() ? "" : " scaled");
}

// Returns the scales of rows; nullopt if tiles have scales, or if the codes are in a dtype that no
// product takes.
std::optional<ScaledRows> RowsOf(DType dtype, size_t columns, const CodeScales& scales) {
  if (dtype != DType::kFloat8E4M3 && dtype != DType::kInt8) return std::nullopt;
  if (scales.values.empty()) return ScaledRows{dtype, {1}};
  const bool whole_rows = scales.columns >= columns;
  if (!whole_rows || (scales.rows != 1 && scales.values.size() != 1)) return std::nullopt;
  return ScaledRows{dtype, scales.values};
}

// If there are no scales, the decoder works on a whole row at a time.
CodeScales WithExtent(CodeScales scales, size_t columns) {
  if (scales.values.empty()) scales.columns = columns;
  return scales;
}

class CodeDecoder final : public TensorDecoder {
 public:
  CodeDecoder(DType dtype, size_t columns, CodeScales scales)
      : name_(NameOfForm(dtype, scales)),
        values_(MakeValues(dtype)),
        scaled_rows_(RowsOf(dtype, std::max<size_t>(columns, 1), scales)),
        columns_(std::max<size_t>(columns, 1)),
        scales_(WithExtent(std::move(scales), columns_)),
        scales_per_row_((columns_ + scales_.columns - 1) / scales_.columns) {}

  std::string_view name() const override { return name_; }
  const ScaledRows* scaled_rows() const override {
    return scaled_rows_.has_value() ? &*scaled_rows_ : nullptr;
  }
  size_t block_elements() const override { return 1; }
  size_t block_bytes() const override { return 1; }

  void Decode(size_t first, std::span<const std::byte> codes,
              std::span<uint16_t> out) const override {
    for (size_t done = 0; done < out.size();) {
      // The number of elements up to the end of the row, or of the part with one scale.
      const size_t row = (first + done) / columns_, column = (first + done) % columns_;
      const size_t end = std::min(columns_, (column / scales_.columns + 1) * scales_.columns);
      const size_t count = std::min(end - column, out.size() - done);
      const float scale =
          scales_.values.empty()
              ? 1
              : scales_.values[row / scales_.rows * scales_per_row_ + column / scales_.columns];
      for (size_t i = done; i < done + count; ++i) {
        out[i] = ToBFloat16(values_[std::to_integer<uint8_t>(codes[i])] * scale);
      }
      done += count;
    }
  }

 private:
  const std::string name_;
  const CodeValues values_;
  const std::optional<ScaledRows> scaled_rows_;
  const size_t columns_;
  const CodeScales scales_;
  const size_t scales_per_row_;
};

}  // namespace

bool IsCode(DType dtype) {
  return dtype == DType::kFloat8E4M3 || dtype == DType::kFloat8E5M2 || dtype == DType::kInt8;
}

std::shared_ptr<const TensorDecoder> MakeCodeDecoder(DType dtype, size_t columns,
                                                     CodeScales scales) {
  return std::make_shared<CodeDecoder>(dtype, columns, std::move(scales));
}

}  // namespace wan
