// Python bindings of ensembles.
#include <nanobind/stl/vector.h>

#include "bind_bins.hpp"
#include "bind_losses.hpp"
#include "bind_packed.hpp"
#include "ensembles/losses_of_ranks.hpp"
#include "ensembles/round.hpp"
#include "ensembles/rounds.hpp"
#include "parallel.hpp"

namespace certree::bindings {
namespace {

auto round_steps(const Ints& left, const Ints& leaf, const Ints& growing, const Ints& others,
                 const Doubles2& gradient, const Doubles2& hessian, double shrinkage,
                 const VotersGiven& given, double fraction_of_others, double curvature,
                 const Doubles& stop, const Ints& feature, const MonotonicSigns& monotonic_signs) {
  const Shape tree = shape(left);
  const std::size_t n = leaf.size(), n_outputs = gradient.shape(0);
  const RoundRows rows{view(leaf), view(growing), view(others),
                       sized("gradient", gradient, n_outputs, n),
                       sized("hessian", hessian, n_outputs, n)};
  const auto m = static_cast<std::int32_t>(tree.size());
  unsigned beyond = 0;
  for (const std::int32_t v : rows.leaf) beyond |= (v < kLeaf) | (v >= m);
  if (beyond) throw std::invalid_argument("leaf must lie in -1 .. " + std::to_string(m - 1));
  expect_codes("growing", rows.growing, static_cast<std::int64_t>(n));
  expect_codes("others", rows.others, static_cast<std::int64_t>(n));
  const std::vector<Voters> voters = voters_of(given, static_cast<std::int64_t>(n_outputs));
  const RoundVote vote = vote_of(shrinkage, voters, fraction_of_others, curvature, stop, feature,
                                 monotonic_signs, tree.size());
  const auto loop = [&](auto step, auto deviation, auto weight) {
    return certree::round_steps(tree, rows, vote, step, deviation, weight);
  };
  return run(loop, Rows<double>(tree.size(), n_outputs), Rows<double>(tree.size(), n_outputs),
             Rows<double>(voters.size(), tree.size()));
}

// That of rounds, of which gradients may be given.
Loss loss_of_rounds(const std::string& name, double parameter) {
  if (name == "custom") return {LossKind::custom, parameter};
  if (name == "ranking") return {LossKind::ranking, 0.0};
  return loss_of(name, parameter);
}

// scale: that of the loss, of which these may be a part of the rows; none: it follows from them.
auto loss_gradients(const std::string& name, double parameter, const Doubles& y,
                    const Doubles2& scores, const std::optional<double>& scale) {
  const Loss loss = loss_of(name, parameter);
  const auto before = scores_of(loss, scores, y.size());
  const auto loop = [&](auto gradient, auto hessian) {
    const ScaledLoss by_rows = scale ? ScaledLoss{loss, *scale} : scaled(loss, view(y), before);
    compute_gradients(by_rows, view(y), before, gradient, hessian);
  };
  return run(loop, Rows<double>(before.n_rows, before.width),
             Rows<double>(before.n_rows, before.width));
}

auto scale_terms_of(const std::string& name, double parameter, const Doubles& y,
                    const Doubles2& scores) {
  const Loss loss = loss_of(name, parameter);
  const auto before = scores_of(loss, scores, y.size());
  if (!has_scale(loss)) throw std::invalid_argument(name + " has no scale");
  return run([&](auto terms) { certree::scale_terms(loss, view(y), before, terms); },
             Column<double>(y.size()));
}

// Numbers of the queries of rows, the truncation of pairs, and of NDCG.
using Ranked = std::tuple<Ints, std::int64_t, std::int64_t>;

RankingGoal goal_of(const Ranked& given) {
  const RankingGoal goal{std::get<1>(given), std::get<2>(given)};
  if (goal.truncation < 1 || goal.at < 0)
    throw std::invalid_argument("pairs and NDCG are of a number of documents");
  return goal;
}

Queries queries_of(const Ranked& given, const Doubles& y) {
  const auto number = sized("query", std::get<0>(given), y.size());
  if (y.size() == 0) throw std::invalid_argument("no rows have no order");
  return certree::queries_of(goal_of(given), number, view(y));
}

auto compute_ranking_gradients(const Ranked& given, const Doubles& y, const Doubles& score,
                               const std::optional<Doubles>& weight, int n_threads) {
  const auto scores = sized("score", score, y.size());
  const auto weights = sized("weight", weight, y.size());
  const auto loop = [&](auto gradient, auto hessian) {
    certree::compute_ranking_gradients(queries_of(given, y), scores.data(), weights, n_threads,
                                       gradient, hessian);
  };
  return run(loop, Column<double>(y.size()), Column<double>(y.size()));
}

double estimate_gradient_dispersion(const Doubles& gradient, const Doubles& hessian,
                                    const std::optional<Doubles>& weight) {
  const auto second = sized("hessian", hessian, gradient.size());
  const auto weights = sized("weight", weight, gradient.size());
  return run(
      [&] { return certree::estimate_gradient_dispersion(view(gradient), second, weights); });
}

double mean_ranking_loss(const Ranked& given, const Doubles& y, const Doubles& score,
                         const std::optional<Doubles>& weight) {
  const auto scores = sized("score", score, y.size());
  const auto weights = sized("weight", weight, y.size());
  return run(
      [&] { return certree::mean_ranking_loss(queries_of(given, y), scores.data(), weights); });
}

auto losses(const std::string& name, double parameter, const Doubles& y, const Doubles2& scores) {
  const Loss loss = loss_of(name, parameter);
  const auto before = scores_of(loss, scores, y.size());
  return run([&](auto of_rows) { losses_of(loss, view(y), before, of_rows); },
             Column<double>(y.size()));
}

// Links to other processes, which are methods of a Python object: `reduce(words, n_sums)` and
// `share(words)` change an array of int64 in place, as those of Ranks do. The array must not be
// used after they return. `is_rank_0` is an attribute.
class PythonRanks : public Ranks {
 public:
  explicit PythonRanks(nb::object links)
      : links_(std::move(links)), is_rank_0_(nb::cast<bool>(links_.attr("is_rank_0"))) {}

  bool is_rank_0() const override { return is_rank_0_; }
  void reduce(std::span<std::int64_t> words, std::size_t n_sums) override {
    const nb::gil_scoped_acquire hold;
    links_.attr("reduce")(array_of(words), n_sums);
  }
  void share(std::span<std::int64_t> words) override {
    const nb::gil_scoped_acquire hold;
    links_.attr("share")(array_of(words));
  }

 private:
  static nb::object array_of(std::span<std::int64_t> words) {
    const std::size_t n = words.size();
    return nb::cast(nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>(words.data(), 1, &n),
                    nb::rv_policy::reference);
  }

  nb::object links_;
  bool is_rank_0_;
};

double mean_loss(const std::string& name, double parameter, const Doubles& y,
                 const Doubles2& scores, const std::optional<Doubles>& weight,
                 const std::optional<nb::object>& links) {
  const Loss loss = loss_of(name, parameter);
  const auto before = scores_of(loss, scores, y.size());
  const auto weights = sized("weight", weight, y.size());
  if (links) {
    PythonRanks ranks(*links);
    return run([&] { return mean_loss_over(ranks, {loss, view(y), before, weights}); });
  }
  if (y.size() == 0) throw std::invalid_argument("no rows have no mean loss");
  const auto room = make_buffer<double>(y.size());
  return run(
      [&] { return certree::mean_loss(loss, view(y), before, weights, {room.get(), y.size()}); });
}

std::int64_t rounds_without_gain(const Doubles& scores, double tol) {
  return certree::rounds_without_gain(view(scores), tol);
}

double dispersion(const std::string& name, double parameter, const Doubles& y,
                  const Doubles2& scores, const std::optional<Doubles>& weight) {
  const Loss loss = loss_of(name, parameter);
  const auto before = scores_of(loss, scores, y.size());
  const auto weights = sized("weight", weight, y.size());
  return run([&] {
    const std::size_t n_gradients = before.values().size();
    const auto room = make_buffer<double>(2 * n_gradients);
    const Table<double> gradient{room.get(), before.n_rows, before.width};
    const Table<double> hessian{room.get() + n_gradients, before.n_rows, before.width};
    const ScaledLoss by_rows = scaled(loss, view(y), before);
    compute_gradients(by_rows, view(y), before, gradient, hessian);
    if (!weights.empty())
      for (std::size_t i = 0; i < 2 * n_gradients; ++i) room[i] *= weights[i % y.size()];
    return dispersion_of(by_rows, view(y), before, weights, gradient, hessian);
  });
}

// Codes, what is kept of the bins, y, weight, keys, numbers of thresholds, seed, scores, values of
// the last rows, gradients of a custom loss, queries where these are ranked, and scores that are
// written over, or none if new ones are returned.
using RunArguments =
    std::tuple<AnyCodes, Kept, Doubles2, std::optional<Doubles>, In<std::uint64_t, 1>, Ints,
               std::uint64_t, Doubles2, std::variant<Doubles2, Sparse<double>>, Doubles2,
               std::optional<Ranked>, std::optional<InOut<double, 2>>>;
// Of each goal the parameter of the loss, its fraction of the loss of a row, its first output, how
// many it has, and its target.
using Goals = std::vector<std::tuple<double, double, std::int64_t, std::int64_t, std::int64_t>>;
// Name of the loss, goals, learning rate, fraction of the losses of other goals that counts in
// votes, l2, curvature, fraction of the rows that grow, stops, numbers of features.
using RoundArguments =
    std::tuple<std::string, Goals, double, double, double, double, double, Doubles, Ints>;

// Whether scores are taken, rounds without a gain that are the last ones, tol, and scores so far.
using Watched = std::tuple<bool, std::int64_t, double, Doubles>;

std::vector<Goal> goals_of(const std::string& name, const Goals& given) {
  if (given.empty()) throw std::invalid_argument("rounds have a goal at least");
  std::vector<Goal> goals;
  for (const auto& [parameter, fraction, first, n_outputs, target] : given) {
    const Loss loss = loss_of_rounds(name, parameter);
    if (n_outputs < 1 || (n_outputs > 1 && loss.kind != LossKind::classes))
      throw std::invalid_argument("a loss of numbers takes scores of one output");
    if (target < 0 || std::cmp_greater_equal(target, given.size()))
      throw std::invalid_argument("targets are as many as goals");
    goals.push_back({loss, fraction, first, n_outputs, target});
  }
  return goals;
}

RunRows rows_of(const RunArguments& given, bool is_custom, std::size_t n_goals, bool may_be_empty) {
  const auto& [codes, kept, y, weight, keys, n_thresholds, seed, scores, values, gradients, ranked,
               in_place] = given;
  const BinnedTable table = binned(codes, kept);
  const std::size_t p = width_of(codes);
  Table<const double> dense;
  SparseRows<double> stored;
  if (const auto* given_values = std::get_if<Doubles2>(&values))
    dense = sized("values", *given_values, given_values->shape(0), p);
  else
    stored = rows(std::get<Sparse<double>>(values));
  if (!stored.start.empty() && !std::cmp_equal(stored.width, p))
    throw std::invalid_argument("values must have as many features as codes");
  const std::int64_t n_values = stored.start.empty() ? dense.n_rows : stored.n_rows();
  const auto n = static_cast<std::size_t>(table.n_rows() + n_values);
  if (n > 2147483647u) throw std::invalid_argument("codes have more than 2147483647 rows");
  if ((keys.size() == 0 && !may_be_empty) || std::cmp_greater(keys.size(), table.n_rows()))
    throw std::invalid_argument("keys must be those of rows, at least one");
  if (n_thresholds.size() == 0) throw std::invalid_argument("no number of thresholds is given");
  RunRows rows{table,
               dense,
               stored,
               sized("y", y, n_goals, n),
               sized("weight", weight, n),
               view(keys),
               view(n_thresholds),
               seed,
               sized("gradients", gradients, is_custom ? 2 * scores.shape(0) : 0,
                     is_custom ? keys.size() : 0),
               {},
               {}};
  if (ranked) {
    rows.goal = goal_of(*ranked);
    rows.query = sized("query", std::get<0>(*ranked), n);
  }
  return rows;
}

// Runs go on at the same time, and share the threads.
auto make_rounds(const std::vector<RunArguments>& runs, const RoundArguments& given,
                 const Watched& watched, const Limits& limits, const MonotonicSigns& monotonic,
                 const Groups& groups, std::int64_t first, std::int64_t last, int n_threads,
                 const std::optional<nb::object>& links) {
  const auto& [name, parts, learning_rate, others, l2, curvature, subsample, stop, n_features] =
      given;
  const auto& [is_on, n_iter_no_change, tol, before_them] = watched;
  const Watch watch{is_on, n_iter_no_change, tol, view(before_them)};
  if (runs.empty() || first < 0 || first > last)
    throw std::invalid_argument("rounds are numbered from 0, and runs are some");
  const std::size_t p = width_of(std::get<0>(runs[0])), n_runs = runs.size();
  // Runs of ranks follow each other, so that messages have an order.
  const int runs_at_once = links ? 1 : static_cast<int>(n_runs);
  const int threads_of_run = std::max(1, n_threads / runs_at_once);
  const std::vector<Goal> goals = goals_of(name, parts);
  const std::size_t n_outputs = std::get<7>(runs[0]).shape(0);
  expect_each_output_once(goals, static_cast<std::int64_t>(n_outputs));
  RoundSettings settings{
      goals,      learning_rate,    others,
      l2,         curvature,        subsample,
      view(stop), view(n_features), growth_of(limits, monotonic, groups, p, threads_of_run)};
  std::optional<PythonRanks> ranks;
  if (links) settings.growth.ranks = &ranks.emplace(*links);
  const bool is_custom = goals[0].loss.kind == LossKind::custom;
  if (is_custom && (last - first > 1 || is_on))
    throw std::invalid_argument("gradients are those of one round, which nobody watches");
  expect_probabilities(view(stop));
  if (!(subsample > 0.0)) throw std::invalid_argument("subsample must be above 0");
  if (n_features.size() == 0 ||
      !std::ranges::all_of(view(n_features), [](std::int32_t one) { return one >= 1; }))
    throw std::invalid_argument("numbers of features must be at least 1");
  std::vector<RunRows> rows;
  std::vector<std::optional<Rows<double>>> made_scores;
  std::vector<Table<double>> scores;
  for (const RunArguments& one : runs) {
    rows.push_back(rows_of(one, is_custom, goals.size(), links.has_value()));
    if (width_of(std::get<0>(one)) != p)
      throw std::invalid_argument("runs must have the same features");
    if (std::get<10>(one).has_value() != (goals[0].loss.kind == LossKind::ranking))
      throw std::invalid_argument("queries are of rows that are ranked");
    const auto n = static_cast<std::size_t>(rows.back().y.width);
    const auto before = sized("scores", std::get<7>(one), n_outputs, n);
    const auto& in_place = std::get<11>(one);
    made_scores.emplace_back();
    if (in_place) {
      scores.push_back(sized("scores", *in_place, n_outputs, n));
      continue;
    }
    scores.push_back(made_scores.back().emplace(before.n_rows, before.width).view());
    std::ranges::copy(before.values(), scores.back().data);
  }
  std::vector<RunTrees> made(n_runs);
  run([&] {
    const int n_at_once = links ? 1 : n_threads;
    parallel_for(static_cast<std::int64_t>(n_runs), n_at_once, [&](std::int64_t i) {
      const auto j = static_cast<std::size_t>(i);
      made[j] = certree::make_rounds(rows[j], settings, watch, first, last, scores[j]);
    });
  });
  const auto hand_over = [&](std::size_t j) {
    RunTrees& trees = made[j];
    const std::size_t m = trees.rows.size();
    const std::size_t n_scores = trees.scores.size() / 2;
    auto& new_scores = made_scores[j];
    return std::tuple(new_scores ? std::optional(new_scores->hand_over()) : std::nullopt,
                      handed_over(std::move(trees.nodes), std::move(trees.root)),
                      owned(std::move(trees.value), m, n_outputs),
                      owned(std::move(trees.deviation), m, n_outputs), owned(std::move(trees.rows)),
                      owned(std::move(trees.losses)), owned(std::move(trees.scores), n_scores, 2));
  };
  std::vector<decltype(hand_over(0))> results;
  for (std::size_t j = 0; j < n_runs; ++j) results.push_back(hand_over(j));
  return results;
}

// Single rows must be fast, so the columns are not checked here: Trees has done it.
TreesView trees_of(const TreeView& nodes, const In<std::int64_t, 1>& root, const Doubles2& value) {
  return {nodes, view(root), sized("value", value, nodes.left.size()), {}};
}

auto pack_trees(const Ints& feature, const Doubles& threshold, const Ints& left,
                const Flags& default_left, const In<std::int64_t, 1>& category_start,
                const Ints& categories) {
  const auto nodes = tree_of(feature, threshold, left, default_left, category_start, categories);
  const std::size_t m = left.size();
  const auto loop = [&](auto rows) {
    certree::pack(nodes, {reinterpret_cast<PackedNode*>(rows.data), m});
  };
  return run(loop, Rows<std::uint64_t>(m, 2));
}

std::int64_t length(const auto& table) { return table.n_rows; }
template <class Real>
std::int64_t length(const SparseRows<Real>& rows) {
  return rows.n_rows();
}

template <class Given>
auto add_trees(const Packed& packed, const In<std::int64_t, 1>& category_start,
               const Ints& categories, const In<std::int64_t, 1>& root, const Doubles2& value,
               std::int64_t first, std::int64_t last, std::int64_t per_stage, const Given& X,
               const Doubles2& start, int n_threads) {
  TreesView trees = packed_trees(packed, category_start, categories, root);
  trees.value = sized("value", value, packed.shape(0));
  if (first < 0 || first > last || std::cmp_greater(last, root.size()))
    throw std::invalid_argument("first and last must be trees");
  if (per_stage < 1 || (last - first) % per_stage != 0)
    throw std::invalid_argument("per_stage must divide the number of trees");
  const std::int64_t n_stages = std::max<std::int64_t>((last - first) / per_stage, 1);
  const auto x = rows(X);
  const auto before = sized("start", start, value.shape(1), static_cast<std::size_t>(length(x)));
  const auto loop = [&](auto total) {
    std::ranges::copy(before.values(), total.data);
    certree::add_trees(trees, static_cast<std::size_t>(first), static_cast<std::size_t>(last),
                       static_cast<std::size_t>(per_stage), x, n_threads, total);
  };
  return run(loop, PredictedRows<double>(checked_size(n_stages, before.n_rows), length(x)));
}

template <class Given>
auto find_leaves(const Packed& packed, const In<std::int64_t, 1>& category_start,
                 const Ints& categories, const In<std::int64_t, 1>& root, const Given& X,
                 int n_threads) {
  const TreesView trees = packed_trees(packed, category_start, categories, root);
  const auto x = rows(X);
  const auto loop = [&](auto leaf) { certree::find_leaves(trees, x, n_threads, leaf); };
  return run(loop, Rows<std::int32_t>(root.size(), length(x)));
}

template <class Real>
auto attribute(const Ints& feature, const Doubles& threshold, const Ints& left,
               const Flags& default_left, const In<std::int64_t, 1>& category_start,
               const Ints& categories, const In<std::int64_t, 1>& root, const Doubles2& value,
               const In<Real, 2>& X, const std::optional<Flags>& both,
               const std::optional<Doubles>& n, int n_threads) {
  const auto nodes = tree_of(feature, threshold, left, default_left, category_start, categories);
  const TreesView trees = trees_of(nodes, root, value);
  if (both.has_value() != n.has_value())
    throw std::invalid_argument("both and n must be given together");
  const MissingRouting missing{sized("both", both, left.size()), sized("n", n, left.size())};
  const auto x = rows(X);
  const std::size_t width = checked_size(value.shape(1), x.width);
  return run([&](auto part) { certree::attribute(trees, missing, x, n_threads, part); },
             Rows<double>(x.n_rows, width));
}

template <class Given>
void bind_walks_of(nb::module_& core) {
  core.def("add_trees", &add_trees<Given>, "packed"_array, "category_start"_array,
           "categories"_array, "root"_array, "value"_array, "first"_a, "last"_a, "per_stage"_a,
           "X"_array, "start"_array, "n_threads"_a,
           "Scores (n_stages * n_outputs, n) after each stage of trees first, ..., last - 1.");
  core.def("find_leaves", &find_leaves<Given>, "packed"_array, "category_start"_array,
           "categories"_array, "root"_array, "X"_array, "n_threads"_a,
           "Leaves (n_trees, n) of rows, numbered among all nodes.");
}

template <class Real>
void bind_for(nb::module_& core) {
  core.def("attribute_to_features", &attribute<Real>, "feature"_array, "threshold"_array,
           "left"_array, "default_left"_array, "category_start"_array, "categories"_array,
           "root"_array, "value"_array, "X"_array, "both"_array_or_none, "n"_array_or_none,
           "n_threads"_a, "What each feature adds to what the roots say of rows.");
}

}  // namespace

void bind_ensembles(nb::module_& core) {
  core.def("compute_gradients", &loss_gradients, "name"_a, "parameter"_a, "y"_array, "scores"_array,
           "scale"_a = nb::none(),
           "(gradient, hessian) of the loss of each row by its scores. scale: that of the loss by "
           "all rows, of which these are some; None: the scale by these rows.");
  core.def(
      "compute_scale_terms", &scale_terms_of, "name"_a, "parameter"_a, "y"_array, "scores"_array,
      "Numbers of the rows of which the scale of a loss is the mean; for \"huber\" a quantile.");
  core.def("compute_losses", &losses, "name"_a, "parameter"_a, "y"_array, "scores"_array,
           "Loss of each row.");
  core.def("compute_mean_loss", &mean_loss, "name"_a, "parameter"_a, "y"_array, "scores"_array,
           "weight"_array_or_none, "links"_a = nb::none(),
           "Mean loss of rows by their weights; with links, of the rows of all ranks.");
  core.def("compute_ranking_gradients", &compute_ranking_gradients, "queries"_a, "y"_array,
           "score"_array, "weight"_array_or_none, "n_threads"_a,
           "(gradient, hessian) of documents by the pairs that they are in.");
  core.def("estimate_gradient_dispersion", &estimate_gradient_dispersion, "gradient"_array,
           "hessian"_array, "weight"_array_or_none,
           "What gradients alone are divided by to be those of a likelihood's negative log.");
  core.def("compute_mean_ranking_loss", &mean_ranking_loss, "queries"_a, "y"_array, "score"_array,
           "weight"_array_or_none, "Mean of 1 - NDCG over queries by their weights.");
  core.def("count_rounds_without_gain", &rounds_without_gain, "scores"_array, "tol"_a,
           "How many scores at the end have not beaten the best one before by more than tol.");
  core.def("estimate_dispersion", &dispersion, "name"_a, "parameter"_a, "y"_array, "scores"_array,
           "weight"_array_or_none,
           "What gradients are divided by to be those of a likelihood's negative log.");
  core.def("run_rounds", &make_rounds, "runs"_a, "settings"_a, "watch"_a, "limits"_a,
           "monotonic"_array_or_none, "groups"_array_or_none, "first"_a, "last"_a, "n_threads"_a,
           "links"_a = nb::none(),
           "Of each run: scores, columns of the trees, steps, their deviations, growing rows of "
           "nodes, losses, and scores of rounds that are watched.");
  core.def(
      "compute_round_steps", &round_steps, "left"_array, "leaf"_array, "growing"_array,
      "others"_array, "gradient"_array, "hessian"_array, "shrinkage"_a, "voters"_a,
      "fraction_of_others"_a, "curvature"_a, "stop"_array, "feature"_array,
      "monotonic_signs"_array_or_none,
      "(steps, deviations, weight, log evidence) of a tree whose prunings have posterior weights.");
  core.def("pack_trees", &pack_trees, "feature"_array, "threshold"_array, "left"_array,
           "default_left"_array, "category_start"_array, "categories"_array,
           "What steps of walks read of each node, in one piece.");
  bind_walks_of<In<float, 2>>(core);
  bind_walks_of<In<double, 2>>(core);
  bind_walks_of<Sparse<float>>(core);
  bind_walks_of<Sparse<double>>(core);
  bind_for<float>(core);
  bind_for<double>(core);
}

}  // namespace certree::bindings
