// Arguments that the bindings of losses and boosting rounds share.
#pragma once

#include <nanobind/stl/vector.h>

#include "bind_bins.hpp"
#include "ensembles/losses.hpp"
#include "ensembles/round.hpp"

namespace certree::bindings {

// A quantile, or the power of the mean that is the variance.
inline bool is_known(LossKind kind, double parameter) {
  if (kind == LossKind::tweedie) return parameter > 1.0 && parameter < 2.0;
  return parameter >= 0.0 && parameter <= 1.0;
}

inline Loss loss_of(const std::string& name, double parameter) {
  constexpr std::array<std::pair<const char*, LossKind>, 7> kinds{
      {{"classes", LossKind::classes},
       {"squared_error", LossKind::squared},
       {"quantile", LossKind::quantile},
       {"huber", LossKind::huber},
       {"poisson", LossKind::poisson},
       {"gamma", LossKind::gamma},
       {"tweedie", LossKind::tweedie}}};
  for (const auto& [known, kind] : kinds)
    if (name == known && is_known(kind, parameter)) return {kind, parameter};
  throw std::invalid_argument("no loss is " + name + " of " + std::to_string(parameter));
}

// Scores (n_outputs, n) that a loss is of.
inline Table<const double> scores_of(const Loss& loss, const Doubles2& scores, std::size_t n) {
  const std::size_t n_outputs = scores.shape(0);
  if (n_outputs == 0 || (n_outputs > 1 && loss.kind != LossKind::classes))
    throw std::invalid_argument("a loss of numbers takes scores of one output");
  return sized("scores", scores, n_outputs, n);
}

// First of the outputs that vote together, how many they are, and the temperature of their loss.
using VotersGiven = std::vector<std::tuple<std::int64_t, std::int64_t, double>>;

// Checks that each of the outputs 0, ..., n_outputs - 1 belongs to one part; parts come in any
// order.
template <class Part>
inline void expect_each_output_once(std::vector<Part> parts, std::int64_t n_outputs) {
  std::ranges::sort(parts, {}, &Part::first);
  std::int64_t next = 0;
  for (const Part& part : parts) {
    if (part.first != next || part.n_outputs < 1 || part.n_outputs > n_outputs - next)
      throw std::invalid_argument("each output must belong to one goal");
    next += part.n_outputs;
  }
  if (next != n_outputs) throw std::invalid_argument("each output must belong to one goal");
}

inline std::vector<Voters> voters_of(const VotersGiven& given, std::int64_t n_outputs) {
  std::vector<Voters> voters;
  for (const auto& [first, of, temperature] : given) voters.push_back({first, of, temperature});
  expect_each_output_once(voters, n_outputs);
  return voters;
}

inline void expect_probabilities(std::span<const double> stop) {
  if (!std::ranges::all_of(stop, [](double s) { return s > 0.0 && s < 1.0; }))
    throw std::invalid_argument("stop must lie between 0 and 1");
}

// How the weights of the prunings of a tree of so many nodes are chosen.
inline RoundVote vote_of(double shrinkage, std::span<const Voters> voters, double others,
                         double curvature, const Doubles& stop, const Ints& feature,
                         const MonotonicSigns& monotonic_signs, std::size_t n_nodes) {
  expect_probabilities(view(stop));
  RoundVote vote{shrinkage, voters, others, curvature, view(stop), {}, {}};
  if (monotonic_signs) {
    vote.feature = sized("feature", feature, n_nodes);
    vote.monotonic_signs = view(*monotonic_signs);
    expect_codes("feature", vote.feature, std::ssize(vote.monotonic_signs));
  }
  return vote;
}

}  // namespace certree::bindings
