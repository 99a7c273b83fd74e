// How the rows of trees of a forest are drawn, as Python says it.
#pragma once

#include "bind.hpp"
#include "grow/forest.hpp"

namespace certree::door {

// Kind, number of draws, seed.
using Draws = std::tuple<std::string, std::int64_t, std::uint64_t>;

inline ForestSampling sampling_of(const Draws& draws, std::size_t n_rows) {
  const auto& [kind, n_draws, seed] = draws;
  if (n_draws < 1) throw std::invalid_argument("at least one row must be drawn");
  if (kind == "repeated") return {Sampling::repeated, n_draws, seed};
  if (std::cmp_greater(n_draws, n_rows)) throw std::invalid_argument("more draws than rows");
  return {kind == "all" ? Sampling::all : Sampling::some, n_draws, seed};
}

}  // namespace certree::door
