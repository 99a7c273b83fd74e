// Binning of values: how many thresholds lie below each.
#pragma once

#include <array>

#include "numbers.hpp"

namespace certree {
namespace {

constexpr std::size_t kPivots = 7;
constexpr std::uint8_t kMissingCode = 255;  // bin of NaN
// Values that one call of count_below() bins.
constexpr std::size_t kValuesAtOnce = 256;

// Writes to code[r] the number of thresholds below x[r], or kMissingCode for NaN.
//
// Branch-free binary searches of all values advance together, as branches would be mispredicted
// half of the time. The first three steps compare with all kPivots pivots, which takes less time
// than to fetch one threshold per value and step.
//
// threshold: (n,) ascending, with n = 2^k - 1 >= kPivots; x and code: (kValuesAtOnce,).
CERTREE_SIMD_CLONES void count_below(const double* threshold, std::size_t n, const double* x,
                                     std::uint8_t* code) noexcept {
  std::array<std::uint64_t, kValuesAtOnce> below;
  std::array<double, kPivots> pivot;
  const std::uint64_t stride = (n + 1) / (kPivots + 1);
  for (std::size_t j = 0; j < kPivots; ++j) pivot[j] = threshold[(j + 1) * stride - 1];
  for (std::size_t r = 0; r < kValuesAtOnce; ++r) {
    std::uint64_t passed = 0;
    for (std::size_t j = 0; j < kPivots; ++j) passed += static_cast<std::uint64_t>(pivot[j] < x[r]);
    below[r] = passed * stride;
  }
  for (std::uint64_t step = stride / 2; step > 0; step /= 2)
    for (std::size_t r = 0; r < kValuesAtOnce; ++r)
      below[r] += step & -static_cast<std::uint64_t>(threshold[below[r] + step - 1] < x[r]);
  for (std::size_t r = 0; r < kValuesAtOnce; ++r)
    code[r] = x[r] == x[r] ? static_cast<std::uint8_t>(below[r]) : kMissingCode;
}

}  // namespace
}  // namespace certree
