// Numbers that look random and depend on nothing but a key.
//
// Each cell has a key of its own, made of its parent's, so that what is drawn in a cell depends
// neither on threads nor on the order in which cells are grown.
#pragma once

#include <cstdint>

namespace certree {

// The increment and the mixing function of splitmix64 (Steele, Lea & Flood, "Fast splittable
// pseudorandom number generators", 2014).
inline constexpr std::uint64_t kGoldenGamma = 0x9E3779B97F4A7C15u;

inline std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// The key of the i-th of those that descend from `key`.
inline std::uint64_t key_of(std::uint64_t key, std::uint64_t i) {
  return mixed(mixed(key + kGoldenGamma) + (i + 1) * kGoldenGamma);
}

class Random {
 public:
  explicit Random(std::uint64_t key) : state_(key) {}

  std::uint64_t bits() { return mixed(state_ += kGoldenGamma); }
  // At least 0, below 1.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  // A whole number below n; the bias is at most n / 2^53.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(uniform() * static_cast<double>(n));
  }

 private:
  std::uint64_t state_;
};

}  // namespace certree
