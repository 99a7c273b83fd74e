// Pseudorandom numbers that are a function of a key alone.
//
// Each node has a key, computed from that of its parent. So what is drawn at a node depends neither
// on the number of threads nor on the order in which nodes are grown.
#pragma once

#include <cstdint>

namespace certree {

// The increment and the mixing function of splitmix64 (Steele, Lea & Flood, "Fast splittable
// pseudorandom number generators", 2014).
inline constexpr std::uint64_t kGoldenGamma = 0x9E3779B97F4A7C15u;

// Returns the bits of x, mixed so that similar numbers have unrelated results.
inline std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Returns the key of the i-th descendant of `key`.
inline std::uint64_t key_of(std::uint64_t key, std::uint64_t i) {
  return mixed(mixed(key + kGoldenGamma) + (i + 1) * kGoldenGamma);
}

// Returns the 64 bits of the i-th call of Random(key).bits(), from 0 on.
inline std::uint64_t random_bits(std::uint64_t key, std::uint64_t i) {
  return mixed(key + (i + 1) * kGoldenGamma);
}

// Returns a number in [0, 1) that is uniform if the bits are.
inline double unit_number(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// The stream of pseudorandom numbers of a key.
class Random {
 public:
  explicit Random(std::uint64_t key) : state_(key) {}

  // Returns 64 random bits.
  std::uint64_t bits() { return mixed(state_ += kGoldenGamma); }
  // Returns a uniform number in [0, 1).
  double uniform() { return unit_number(bits()); }
  // Returns a uniform integer in 0, ..., n - 1; the bias is at most n / 2^53.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(uniform() * static_cast<double>(n));
  }

 private:
  std::uint64_t state_;
};

}  // namespace certree
