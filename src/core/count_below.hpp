// How many thresholds lie below each of some values, by which values are binned.
#pragma once

#include <array>

#include "numbers.hpp"

namespace certree {
namespace {

constexpr std::size_t kPivots = 7;
constexpr std::uint8_t kMissingCode = 255;  // bin of NaN
// Number of values whose searches advance together.
constexpr std::size_t kValuesAtOnce = 256;

// Appends infinite thresholds, which no value exceeds, until their number is at least kPivots and a
// power of two minus one, as search_thresholds() needs.
inline void pad_thresholds(std::vector<double>& threshold) {
  std::size_t n = kPivots;
  while (n < threshold.size()) n = 2 * n + 1;
  threshold.resize(n, kInfinity);
}

// Writes to below[r] the number of thresholds below x[r]; 0 for NaN.
//
// Branch-free binary searches of all values advance together, as branches would be mispredicted
// half of the time. The first three steps compare with all kPivots pivots, which takes less time
// than to fetch one threshold per value and step.
//
// threshold: (n,) ascending, padded by pad_thresholds(); x and below: (kValuesAtOnce,).
CERTREE_INLINE void search_thresholds(const double* threshold, std::size_t n, const double* x,
                                      std::uint64_t* below) {
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
}

// search_thresholds(), compiled for several kinds of processor.
[[maybe_unused]] CERTREE_SIMD_CLONES void count_below(const double* threshold, std::size_t n,
                                                      const double* x,
                                                      std::uint64_t* below) noexcept {
  search_thresholds(threshold, n, x, below);
}

// Writes to code[r] the number of thresholds below x[r], of which there are at most 254, or
// kMissingCode for NaN.
[[maybe_unused]] CERTREE_SIMD_CLONES void bin_values(const double* threshold, std::size_t n,
                                                     const double* x, std::uint8_t* code) noexcept {
  std::array<std::uint64_t, kValuesAtOnce> below;
  search_thresholds(threshold, n, x, below.data());
  for (std::size_t r = 0; r < kValuesAtOnce; ++r)
    code[r] = x[r] == x[r] ? static_cast<std::uint8_t>(below[r]) : kMissingCode;
}

}  // namespace
}  // namespace certree
