// Thresholds between neighbouring values of a feature.
#pragma once

#include "arrays.hpp"

namespace certree {

// The middle of the gap between two neighbouring values, or the lower value where the middle rounds
// to the upper one or that one is an infinity, which stands for NaN.
inline double between(double low, double high) {
  if (high == kInfinity) return low;
  const double middle = low * 0.5 + high * 0.5;
  return middle >= low && middle < high ? middle : low;
}

inline bool is_float32(double x) { return static_cast<double>(static_cast<float>(x)) == x; }

// The largest number that rounds to a number of float32.
inline double last_rounded_to(float x) {
  constexpr float kNoFloat = std::numeric_limits<float>::infinity();
  constexpr double kOverflow = 0x1.ffffffp127;  // from here on float32 is infinite
  const float next = std::nextafter(x, kNoFloat);
  double tie = static_cast<double>(x) * 0.5 + static_cast<double>(next) * 0.5;
  if (x == kNoFloat) return kInfinity;
  if (x == -kNoFloat) tie = -kOverflow;
  if (next == kNoFloat) tie = kOverflow;
  return static_cast<float>(tie) == x ? tie : std::nextafter(tie, -kInfinity);
}

// The threshold next to `wanted` by which rows go to the same side whether their values are float64
// or rounded to float32. low <= wanted < high are neighbouring values; without a value above, high
// is infinite. A number of float32 stays as it is, as it is short; it must not be what a value
// rounds to. All others move to where the numbers end that round to one of float32.
//
// Where float32 does not tell low and high apart, there is no such threshold. The one that is
// returned is neither a number of float32 nor such an end, by which readers of the tree know.
// (Not so if low is a number of float32 and high the next number after it.)
inline double threshold_near(double wanted, double low, double high) {
  const auto below = static_cast<float>(low), above = static_cast<float>(high);
  if (below == above) {
    if (!is_float32(wanted)) return wanted;
    return is_float32(low) ? between(low, high) : low;
  }
  const auto rounded = static_cast<float>(wanted);
  if (is_float32(wanted) && wanted < static_cast<double>(above)) return wanted;
  const double end = last_rounded_to(rounded);
  if (end < high) return end;
  return last_rounded_to(std::nextafter(rounded, -std::numeric_limits<float>::infinity()));
}

// The same next to the middle of the gap.
inline double threshold_between(double low, double high) {
  return threshold_near(between(low, high), low, high);
}

}  // namespace certree
