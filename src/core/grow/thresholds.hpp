// Thresholds between neighbouring values of a feature.
#pragma once

#include "arrays.hpp"

namespace certree {

// Returns the middle between two neighbouring values; or the lower one if the middle rounds to the
// upper one, or if the upper one is infinite, which stands for NaN.
inline double between(double low, double high) {
  if (high == kInfinity) return low;
  const double middle = low * 0.5 + high * 0.5;
  return middle >= low && middle < high ? middle : low;
}

// Returns whether x is a number of float32.
inline bool is_float32(double x) { return static_cast<double>(static_cast<float>(x)) == x; }

// Returns the largest double that rounds to the float32 number x.
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

// Returns the threshold nearest to `wanted` by which rows go to the same child whether their values
// are float64 or rounded to float32. low <= wanted < high are neighbouring values; high is infinite
// if there is no value above. A `wanted` that is a float32 number, which has few digits, is
// returned as it is, unless high rounds to it. Otherwise the result is the largest double that
// rounds to some float32 number.
//
// If low and high round to the same float32 number, there is no such threshold. Then the result is
// neither a float32 number nor the largest double that rounds to one, by which readers of the tree
// recognise the case (unless low is a float32 number and high the next double after it).
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

// Returns the same for the middle between low and high.
inline double threshold_between(double low, double high) {
  return threshold_near(between(low, high), low, high);
}

}  // namespace certree
