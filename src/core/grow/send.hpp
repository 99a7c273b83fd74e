// Partitioning the rows of a node into those of its left and right child.
#pragma once

#include <array>

#include "interrupt.hpp"

namespace certree {

// Whether rows go left, by the bin of the split feature: 1 or 0.
using GoesLeft = std::array<std::uint8_t, 256>;

// Bins of one feature by row, in a table stored by feature, or by row (width: number of features).
struct CodesOfFeature {
  const std::uint8_t* code;
  std::size_t operator[](std::size_t row) const { return code[row]; }
};
struct CodesByRow {
  const std::uint8_t* code;
  std::int64_t width;
  std::size_t operator[](std::size_t row) const {
    return code[static_cast<std::int64_t>(row) * width];
  }
};

// Returns the number of a row that is partitioned, which may be stored with other data.
inline std::size_t row_of(std::int32_t row) { return static_cast<std::size_t>(row); }
inline std::size_t row_of(const auto& item) { return item.row; }

// Moves the rows that go left to the front; the rows of both children keep their order. Returns how
// many go left.
// scratch: memory for as many rows.
template <class Row, class Codes>
std::int64_t send(std::span<Row> rows, const Codes& codes, const GoesLeft& goes_left,
                  Row* scratch) {
  Row* to_left = rows.data();
  Row* to_right = scratch;
  for (const auto part : chunks(rows))
    for (const Row row : part) {
      const std::size_t left = goes_left[codes[row_of(row)]];
      *to_left = *to_right = row;  // no branch: it would often be mispredicted
      to_left += left;
      to_right += 1 - left;
    }
  std::copy(scratch, to_right, to_left);
  return to_left - rows.data();
}

}  // namespace certree
