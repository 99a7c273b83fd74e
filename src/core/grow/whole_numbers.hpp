// Sums of numbers as whole numbers, so that they have the same bits in whatever order rows are
// added, and a cell less one of its children is exactly the other.
#pragma once

#include <bit>

#include "numbers.hpp"

namespace certree {

// What a double is told apart from its neighbours by: 2^52 and a half more, whose last bit counts
// ones.
inline constexpr double kOnes = 0x1.8p52;

// The nearest double, as the processor's own conversion gives it; in lanes, which that has not.
CERTREE_INLINE double to_double(std::int64_t whole) {
  const auto bits = static_cast<std::uint64_t>(whole);
  const auto high = std::bit_cast<double>((bits >> 32) ^ 0x4530000080000000u);  // 2^84 + 2^63 + ...
  const auto low = std::bit_cast<double>((bits & 0xFFFFFFFFu) | 0x4330000000000000u);  // 2^52 + ...
  return (high - 0x1.00000801p84) + low;
}

// Numbers in units of a power of two, in which the largest of them is at most 2^40: what is rounded
// is below 2^-40 of it. Of more than 2^22 numbers the largest is smaller, so that no sum of them
// exceeds 2^62.
class FixedPoint {
 public:
  static constexpr int kBits = 40;

  FixedPoint(double largest, std::int64_t n) {
    const auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1) - 1);
    const auto growth = static_cast<int>(std::bit_width(most));
    int exponent = 0;
    std::frexp(largest, &exponent);
    unit_ = exponent - std::min(kBits, 62 - growth);
    // One factor alone may overflow.
    first_ = std::ldexp(1.0, -unit_ / 2);
    second_ = std::ldexp(1.0, -unit_ - -unit_ / 2);
  }
  // Ties to even. Of what is larger than the largest, which loops may look at, it is any number.
  CERTREE_INLINE std::int64_t whole(double x) const {
    return static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(x * first_ * second_ + kOnes) -
                                     std::bit_cast<std::uint64_t>(kOnes));
  }
  double number(std::int64_t whole) const { return std::ldexp(static_cast<double>(whole), unit_); }
  // The exponent of the power of two.
  int unit() const { return unit_; }

 private:
  int unit_ = 0;
  double first_ = 1.0, second_ = 1.0;
};

}  // namespace certree
