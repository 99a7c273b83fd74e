// Sums of the rows go up the tree, steps that are drawn to their parents' go down, posteriors over
// the prunings go up and down as for single trees.
#include "ensembles/round.hpp"

#include "grow/whole_numbers.hpp"
#include "votes.hpp"
#include "weights/weights.hpp"

namespace certree {
namespace {

// Gradients and Hessians of the in-bag or out-of-bag rows of each node, of one output.
struct Sums {
  double gradient, hessian;
};

double largest_of(std::span<const double> column, std::span<const std::int32_t> rows) {
  double largest = 0.0;
  for (const auto part : chunks(rows))
    for (const std::int32_t i : part)
      largest = std::max(largest, std::abs(column[static_cast<std::size_t>(i)]));
  return largest;
}

// whole: (m, 2) to which rows are added at the leaves that they reach.
void add_by_leaf(std::span<const std::int32_t> leaf, std::span<const std::int32_t> rows,
                 const double* gradient, const double* hessian, const FixedPoint& of_gradient,
                 const FixedPoint& of_hessian, std::int64_t* whole) {
  for (const auto part : chunks(rows))
    for (const std::int32_t row : part) {
      const auto i = static_cast<std::size_t>(row);
      if (leaf[i] < 0) continue;
      std::int64_t* const at = whole + 2 * leaf[i];
      at[0] += of_gradient.whole(gradient[i]);
      at[1] += of_hessian.whole(hessian[i]);
    }
}

// whole: (m, 2) sums over rows by leaf, which become those of all nodes; sums: (m,) the same.
void add_below(Shape tree, std::span<std::int64_t> whole, const FixedPoint& of_gradient,
               const FixedPoint& of_hessian, std::span<Sums> sums) {
  for (const std::size_t v : indices_down(tree.size(), 2)) {
    std::int64_t* const at = whole.data() + 2 * v;
    if (!tree.is_leaf(v)) {
      const std::int64_t* const below = whole.data() + 2 * tree.left(v);
      for (std::size_t i = 0; i < 2; ++i) at[i] = below[i] + below[i + 2];
    }
    sums[v] = {of_gradient.number(at[0]), of_hessian.number(at[1])};
  }
}

// sums: (m,) over some rows in each node, as whole numbers: neither the order of the rows nor how
// they are divided changes a bit.
void sum_up(Shape tree, std::span<const std::int32_t> leaf, std::span<const std::int32_t> rows,
            std::span<const double> gradient, std::span<const double> hessian,
            std::span<Sums> sums) {
  const FixedPoint of_gradient(largest_of(gradient, rows), std::ssize(rows));
  const FixedPoint of_hessian(largest_of(hessian, rows), std::ssize(rows));
  std::vector<std::int64_t> whole(2 * tree.size());
  add_by_leaf(leaf, rows, gradient.data(), hessian.data(), of_gradient, of_hessian, whole.data());
  add_below(tree, whole, of_gradient, of_hessian, sums);
}

// The sums of an output over the rows that have grown the tree, and over those that choose the
// weights of its prunings.
struct SumsByRowSet {
  std::vector<Sums> grown, other;

  explicit SumsByRowSet(std::size_t m) : grown(m), other(m) {}

  void sum(Shape tree, const RoundRows& rows, std::int64_t output) {
    const auto n = static_cast<std::size_t>(rows.gradient.width);
    const std::span gradient(rows.gradient.row(output), n);
    const std::span hessian(rows.hessian.row(output), n);
    sum_up(tree, rows.leaf, rows.others, gradient, hessian, other);
    sum_up(tree, rows.leaf, rows.growing, gradient, hessian, grown);
  }
  void sum(Shape tree, const RoundSums& given, std::int64_t output) {
    for (const bool grows : {true, false}) {
      const RowSetSums& row_set = grows ? given.growing : given.others;
      const double* const largest = row_set.largest.row(output);
      const std::int64_t* const from = row_set.whole.row(output);
      std::vector<std::int64_t> whole(from, from + row_set.whole.width);
      add_below(tree, whole, FixedPoint(largest[0], row_set.n_rows),
                FixedPoint(largest[1], row_set.n_rows), grows ? grown : other);
    }
  }
};

// value: (m,) Newton steps by sums_of(v), drawn to those of the parents, that keep to the monotonic
// constraints.
template <class SumsOf>
void compute_newton_steps(Shape tree, const RoundVote& vote, const SumsOf& sums_of,
                          std::span<double> value) {
  value[0] = 0.0;
  for (const std::size_t v : indices(tree.size())) {
    const double above = value[v];
    const Sums own = sums_of(v);
    const double drawn = v == 0 ? 0.0 : vote.shrinkage;
    const double hessian = own.hessian + drawn;
    if (hessian > 0.0) value[v] = (drawn * above - own.gradient) / hessian;
    if (!tree.is_leaf(v)) value[tree.left(v)] = value[tree.left(v) + 1] = value[v];
  }
  if (vote.monotonic_signs.empty()) return;
  const std::vector<double> free(value.begin(), value.end());
  make_monotone(tree, vote.feature, vote.monotonic_signs, free, value);
}

// weight: (m,) mixture of posteriors of the branching prior, by their evidence. own: (m,) log
// weights.
double mix_priors(Shape tree, std::span<const double> own, std::span<const double> stop,
                  std::span<double> weight) {
  const std::size_t m = tree.size(), n_posteriors = stop.size();
  std::vector<double> gains(m, 0.0), log_stop(m, 0.0), log_split(m, 0.0), log_odds(m);
  for (std::size_t v = 0; v < m; ++v)
    if (!tree.is_leaf(v)) gains[v] = own[tree.left(v)] + own[tree.left(v) + 1] - own[v];
  const PosteriorFamily posterior{
      tree, {gains.data(), static_cast<std::int64_t>(m), 1}, log_stop, log_split};
  std::vector<double> evidence(n_posteriors), part(n_posteriors * m);
  const double theta = 1.0;
  for (std::size_t j = 0; j < n_posteriors; ++j) {
    const double stops = std::log(stop[j]), splits = std::log1p(-stop[j]);
    for (std::size_t v = 0; v < m; ++v) {
      if (tree.is_leaf(v)) continue;
      log_stop[v] = stops;
      log_split[v] = splits;
    }
    const std::span weights(part.data() + j * m, m);
    evidence[j] = compute_posterior(posterior, {&theta, 1}, {own.data(), 1}, PruningMode::average,
                                    weights, log_odds);
  }
  const double best = std::ranges::max(evidence);
  double total = 0.0;
  for (double& e : evidence) total += e = std::exp(e - best);
  std::ranges::fill(weight, 0.0);
  for (std::size_t j = 0; j < n_posteriors; ++j)
    for (std::size_t v = 0; v < m; ++v) weight[v] += evidence[j] / total * part[j * m + v];
  return best + std::log(total / static_cast<double>(n_posteriors));
}

// step: (m, n_outputs) of some outputs the value of the root and the changes of the values down to
// each node, each by the probability that a pruning goes that far: at leaves the average over the
// prunings.
// variance: (m, n_outputs) of these outputs that of what the prunings say, as far as it is known
// there.
void add_changes(Shape tree, const Voters& voters, Table<const double> value,
                 std::span<const double> weight, Table<double> step, Table<double> variance) {
  std::vector<double> reached(tree.size(), 1.0);
  const std::int64_t first = voters.first, end = first + voters.n_outputs;
  // (m, n_outputs) what a node says beyond the average of the prunings so far.
  const auto distances = make_buffer<double>(value.n_rows, value.width);
  const Table<double> distance{distances.get(), value.n_rows, value.width};
  std::fill_n(distance.data + first, voters.n_outputs, 0.0);
  std::copy_n(value.data + first, voters.n_outputs, step.data + first);
  std::fill_n(variance.data + first, voters.n_outputs, 0.0);
  for (std::size_t v = 0; v < tree.size(); ++v) {
    if (tree.is_leaf(v)) continue;
    for (const std::size_t child : {tree.left(v), tree.left(v) + 1}) {
      reached[child] = std::max(reached[v] - weight[v], 0.0);
      for (std::int64_t k = first; k < end; ++k) {
        const double moved = value.row(child)[k] - value.row(v)[k], change = reached[child] * moved;
        step.row(child)[k] = step.row(v)[k] + change;
        const double before = distance.row(v)[k], after = before + (1.0 - reached[child]) * moved;
        distance.row(child)[k] = after;
        // What the mean of the squares gains, less what the square of the mean does.
        const double more = change * (before + after);
        variance.row(child)[k] = std::max(variance.row(v)[k] + more, 0.0);
      }
    }
  }
}

// own: (n_voters, m) log weights by the losses of each, to which those of all others are added, as
// far as they count.
void add_others(double fraction, Table<double> own) {
  const auto m = static_cast<std::size_t>(own.width);
  std::vector<double> all(m, 0.0);
  for (std::int64_t j = 0; j < own.n_rows; ++j)
    for (std::size_t v = 0; v < m; ++v) all[v] += own.row(j)[v];
  for (std::int64_t j = 0; j < own.n_rows; ++j)
    for (std::size_t v = 0; v < m; ++v) own.row(j)[v] += fraction * (all[v] - own.row(j)[v]);
}

template <class Rows>
double steps_by(Shape tree, const Rows& rows, const RoundVote& vote, Table<double> step,
                Table<double> deviation, Table<double> weight) {
  const std::size_t m = tree.size();
  const auto width = static_cast<std::int64_t>(m), n_voters = std::ssize(vote.voters);
  const std::int64_t n_outputs = step.width;
  SumsByRowSet sums(m);
  std::vector<double> log_weight(m * vote.voters.size(), 0.0), grown(m), refilled(m);
  const Table<double> own{log_weight.data(), n_voters, width};
  const auto room = make_buffer<double>(m, n_outputs);
  const Table<double> values{room.get(), width, n_outputs};
  for (std::int64_t j = 0; j < n_voters; ++j) {
    const Voters& voters = vote.voters[static_cast<std::size_t>(j)];
    for (std::int64_t k = voters.first; k < voters.first + voters.n_outputs; ++k) {
      sums.sum(tree, rows, k);
      compute_newton_steps(tree, vote, [&](std::size_t v) { return sums.grown[v]; }, grown);
      const auto of_both = [&](std::size_t v) {
        const Sums &a = sums.grown[v], &b = sums.other[v];
        return Sums{a.gradient + b.gradient, a.hessian + b.hessian};
      };
      compute_newton_steps(tree, vote, of_both, refilled);
      for (std::size_t v = 0; v < m; ++v) {
        const auto& [gradient, hessian] = sums.other[v];
        const double half = 0.5 * vote.curvature * hessian * grown[v];
        own.row(j)[v] -= voters.temperature * (gradient + half) * grown[v];
        values.row(v)[k] = refilled[v];
      }
    }
  }
  if (n_voters > 1) add_others(vote.others, own);
  double evidence = 0.0;
  for (std::int64_t j = 0; j < n_voters; ++j) {
    const std::span<double> of_voters(weight.row(j), m);
    if (vote.stop.empty())
      for (std::size_t v = 0; v < m; ++v) of_voters[v] = tree.is_leaf(v) ? 1.0 : 0.0;
    else
      evidence += mix_priors(tree, {own.row(j), m}, vote.stop, of_voters);
    add_changes(tree, vote.voters[static_cast<std::size_t>(j)], values, of_voters, step, deviation);
  }
  for (double& one : deviation.values()) one = std::sqrt(one);
  return evidence;
}

}  // namespace

void find_largest_by_output(const RoundRows& rows, Table<double> growing, Table<double> others) {
  const auto n = static_cast<std::size_t>(rows.gradient.width);
  for (std::int64_t k = 0; k < rows.gradient.n_rows; ++k)
    for (const bool grows : {true, false}) {
      const auto some = grows ? rows.growing : rows.others;
      double* const largest = (grows ? growing : others).row(k);
      largest[0] = largest_of({rows.gradient.row(k), n}, some);
      largest[1] = largest_of({rows.hessian.row(k), n}, some);
    }
}

void add_up_leaves(const RoundRows& rows, const RoundSums& sums) {
  for (std::int64_t k = 0; k < rows.gradient.n_rows; ++k)
    for (const bool grows : {true, false}) {
      const RowSetSums& of_set = grows ? sums.growing : sums.others;
      const double* const largest = of_set.largest.row(k);
      add_by_leaf(rows.leaf, grows ? rows.growing : rows.others, rows.gradient.row(k),
                  rows.hessian.row(k), FixedPoint(largest[0], of_set.n_rows),
                  FixedPoint(largest[1], of_set.n_rows), of_set.whole.row(k));
    }
}

double round_steps(Shape tree, const RoundRows& rows, const RoundVote& vote, Table<double> step,
                   Table<double> deviation, Table<double> weight) {
  return steps_by(tree, rows, vote, step, deviation, weight);
}

double round_steps(Shape tree, const RoundSums& sums, const RoundVote& vote, Table<double> step,
                   Table<double> deviation, Table<double> weight) {
  return steps_by(tree, sums, vote, step, deviation, weight);
}

}  // namespace certree
