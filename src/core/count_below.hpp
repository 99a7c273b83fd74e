// Where numbers stand among thresholds.
#pragma once

#include <array>

#include "numbers.hpp"

namespace certree {
namespace {

constexpr std::size_t kPivots = 7;
constexpr std::uint8_t kMissingCode = 255;
// So many values are looked up side by side.
constexpr std::size_t kValuesAtOnce = 256;

// How many thresholds lie below each value: searches side by side, without branches, which would be
// guessed wrong half of the time. Comparing with all of the first few takes less than looking one
// up for each value.
//
// threshold: (n,) ascending, as many as a search by halves looks at, and at least kPivots; x and
// code: (kValuesAtOnce,).
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
