// experts_int8 (model.md 7): symmetric, one fp32 scale per output row, no zero point.
#pragma once

#include <cstdint>
#include <span>

namespace levin {

// max|row| / 127 in fp32, and 1 for a row of zeros. The row is the full one, before any slice of
// its columns: scales must not depend on the number of ranks. NaN or infinite when an element is.
float RowScaleInt8(std::span<const uint16_t> row_bf16);

// q = clamp(round_half_even(x / scale), -127, 127), a true fp32 division. out: as long as `values`,
// which may be any part of the row. Finite values only.
void QuantizeInt8(std::span<const uint16_t> values_bf16, float scale, std::span<int8_t> out);

}  // namespace levin
