// Sums of numbers as integers (fixed point). They do not depend on the order of the rows, and the
// histogram of a node minus that of one child is exactly that of the other.
#pragma once

#include <bit>

#include "numbers.hpp"

namespace certree {

// 1.5 * 2^52: the last bit of a double near it counts ones, so adding it rounds to an integer.
inline constexpr double kOnes = 0x1.8p52;

// Returns the nearest double, as a cast does. Before AVX-512 processors have no vector instruction
// for the cast, but vectorise this.
CERTREE_INLINE double to_double(std::int64_t whole) {
  const auto bits = static_cast<std::uint64_t>(whole);
  const auto high = std::bit_cast<double>((bits >> 32) ^ 0x4530000080000000u);  // 2^84 + 2^63 + ...
  const auto low = std::bit_cast<double>((bits & 0xFFFFFFFFu) | 0x4330000000000000u);  // 2^52 + ...
  return (high - 0x1.00000801p84) + low;
}

// Converts numbers to integers, in units of a power of two. The unit makes the largest number at
// most 2^40, so that rounding errors are below 2^-40 of it; for more than 2^22 numbers it is
// coarser, so that no sum of n integers exceeds 2^62.
class FixedPoint {
 public:
  static constexpr int kBits = 40;

  // largest: the largest absolute value; n: how many numbers are added up at most.
  FixedPoint(double largest, std::int64_t n) {
    const auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1) - 1);
    const auto growth = static_cast<int>(std::bit_width(most));
    int exponent = 0;
    std::frexp(largest, &exponent);
    unit_ = exponent - std::min(kBits, 62 - growth);
    // Two factors, as 2^-unit alone may overflow.
    first_ = std::ldexp(1.0, -unit_ / 2);
    second_ = std::ldexp(1.0, -unit_ - -unit_ / 2);
  }
  // Returns x in units, rounded, ties to even. Undefined, but harmless, above the largest number.
  CERTREE_INLINE std::int64_t whole(double x) const {
    return static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(x * first_ * second_ + kOnes) -
                                     std::bit_cast<std::uint64_t>(kOnes));
  }
  // Converts a sum of integers back.
  double number(std::int64_t whole) const { return std::ldexp(static_cast<double>(whole), unit_); }
  // Returns the exponent of the unit, a power of two.
  int unit() const { return unit_; }

 private:
  int unit_ = 0;
  double first_ = 1.0, second_ = 1.0;
};

}  // namespace certree
