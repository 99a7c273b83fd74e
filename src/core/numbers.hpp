// exp and log written as branch-free arithmetic, so that compilers vectorise loops that call them.
#pragma once

#include <array>
#include <bit>

#include "arrays.hpp"

// Compiles clones of a function for AVX2 (x86-64-v3) and AVX-512 (x86-64-v4); the loader picks the
// widest that the processor has. Results are the same to the bit in all of them: products and sums
// are not contracted to fma, and std::fma rounds once on every processor.
//
// GCC treats the dispatching function as noexcept, so an exception through it ends the process.
// Functions with clones must be noexcept, or be called through a ClonePointer.
#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) && \
    defined(__GLIBC__)
#define CERTREE_SIMD_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CERTREE_SIMD_CLONES
#endif
#if defined(__GNUC__)
#define CERTREE_INLINE inline __attribute__((always_inline))
#else
#define CERTREE_INLINE inline
#endif

namespace certree {

// Pointer to a function with clones through which exceptions pass. It is volatile, as otherwise
// compilers would see its target and call the dispatching function directly.
template <class Function>
using ClonePointer = Function* volatile;

// Loads n entries into the cache ahead of their use. It must be inlined: compilers drop a call of a
// function that only prefetches, as it has no other effect.
template <class T>
CERTREE_INLINE void prefetch([[maybe_unused]] const T* begin, [[maybe_unused]] std::int64_t n) {
#if defined(__GNUC__)
  const auto* byte = reinterpret_cast<const char*>(begin);
  for (const auto* end = reinterpret_cast<const char*>(begin + n); byte < end; byte += 64)
    __builtin_prefetch(byte);
#endif
}

// Returns sum_i coefficient[i] x^i. Odd and even powers are summed separately, so that the
// processor computes both sums at the same time.
template <std::size_t n>
CERTREE_INLINE double evaluate_polynomial(const std::array<double, n>& coefficient, double x) {
  const double square = x * x;
  const auto sum = [&]<std::size_t... i>(std::index_sequence<i...>) {
    double part[2] = {coefficient[n - 1], coefficient[n - 2]};
    ((part[i % 2] = part[i % 2] * square + coefficient[n - 3 - i]), ...);
    return part[1 - n % 2] + x * part[n % 2];
  };
  return sum(std::make_index_sequence<n - 2>());
}

// Returns exp(-a) for a >= 0, with an error of at most two units in the last place; 0 for a >= 708,
// where exp(-a) < 1e-307.
CERTREE_INLINE double exp_minus(double a) {
  constexpr auto series = [] {
    std::array<double, 14> c{1.0};
    for (std::size_t i = 1; i < c.size(); ++i) c[i] = c[i - 1] / static_cast<double>(i);
    return c;
  }();
  constexpr double kLog2E = 0x1.71547652b82fep+0, kShift = 0x1.8p52;
  constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;
  // Bit patterns of positive numbers have the order of the numbers. They are compared instead of
  // the numbers, as compilers make branches of the latter, which prevents vectorisation.
  constexpr auto kMost = std::bit_cast<std::int64_t>(708.0);
  const auto bits = std::bit_cast<std::int64_t>(std::abs(a));
  const auto near = std::bit_cast<double>(std::min(bits, kMost));
  const auto is_near = static_cast<std::uint64_t>(-static_cast<std::int64_t>(bits < kMost));
  const double shifted = near * kLog2E + kShift;  // k in the last bits
  const double k = shifted - kShift;
  const double r = (k * kLn2High - near) + k * kLn2Low;
  const auto scale = std::bit_cast<double>(std::bit_cast<std::uint64_t>(1.0) -
                                           (std::bit_cast<std::uint64_t>(shifted) << 52));
  const double power = evaluate_polynomial(series, r) * scale;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(power) & is_near);
}

// Returns log((1 + s) / (1 - s)) for |s| <= 0.1716.
CERTREE_INLINE double log_ratio(double s) {
  constexpr auto series = [] {
    std::array<double, 11> c{};
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = 2.0 / static_cast<double>(2 * i + 1);
    return c;
  }();
  return s * evaluate_polynomial(series, s * s);
}

inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// Returns log(1 + e) for 0 <= e <= 1, with a small relative error also near e = 0.
CERTREE_INLINE double log_one_plus(double e) {
  // 1 if log 2 is split off; used as a factor, as a branch would prevent vectorisation.
  const double n_halvings = e > 0.41421356 ? 1.0 : 0.0;
  return log_ratio((e - n_halvings) / (e + (2.0 + n_halvings))) + n_halvings * kLn2;
}

// Returns log(x) for x > 0 that are not subnormal.
CERTREE_INLINE double log_positive(double x) {
  constexpr std::uint64_t kRootHalf = 0x3FE6A09E00000000u, kMantissa = 0x000FFFFFFFFFFFFFu;
  constexpr double kShift = 0x1.8p52;
  // x = 2^k m with m in [sqrt(1/2), sqrt(2)); the biased exponent k + 1023 is never negative.
  const std::uint64_t offset = std::bit_cast<std::uint64_t>(x) + (0x3FF0000000000000u - kRootHalf);
  const std::uint64_t biased = offset >> 52;
  const auto m = std::bit_cast<double>((offset & kMantissa) + kRootHalf);
  const double k = std::bit_cast<double>(std::bit_cast<std::uint64_t>(kShift) + biased) - kShift;
  return log_ratio((m - 1.0) / (m + 1.0)) + (k - 1023.0) * kLn2;
}

// Returns x log(x), or 0 if x is not positive.
CERTREE_INLINE double x_log_x(double x) {
  const double positive = x > 0.0 ? x : 1.0;
  return positive * log_positive(positive);
}

}  // namespace certree
