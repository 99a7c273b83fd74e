// Sending rows on: to one side of a cut or the other.
#pragma once

#include <array>

#include "interrupt.hpp"

namespace certree {

// Whether rows with a code go left.
using GoesLeft = std::array<std::uint8_t, 256>;

// The codes of rows by one feature: where the codes of a feature lie together, and those of a row.
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

// What is moved about is the number of a row, or more that knows it.
inline std::size_t row_of(std::int32_t row) { return static_cast<std::size_t>(row); }
inline std::size_t row_of(const auto& item) { return item.row; }

// Rows that go left move to the front; both sides keep their order. Returns how many these are.
// scratch: room for as many rows.
template <class Row, class Codes>
std::int64_t send(std::span<Row> rows, const Codes& codes, const GoesLeft& goes_left,
                  Row* scratch) {
  Row* to_left = rows.data();
  Row* to_right = scratch;
  for (const auto part : chunks(rows))
    for (const Row row : part) {
      const std::size_t left = goes_left[codes[row_of(row)]];
      *to_left = *to_right = row;  // no branch: it would be guessed wrong too often
      to_left += left;
      to_right += 1 - left;
    }
  std::copy(scratch, to_right, to_left);
  return to_left - rows.data();
}

}  // namespace certree
