// The rounds of a run share their memory, and those that judge are sent along with each tree.
#include "ensembles/rounds.hpp"

#include "ensembles/draws_of_round.hpp"
#include "ensembles/losses_of_ranks.hpp"
#include "ensembles/round.hpp"
#include "grow/coarser.hpp"

#include <optional>

namespace certree {
namespace {

// Scores of a round: negated mean losses of the rows that train and of those that judge, and the
// sum of the losses of the latter.
struct RoundScores {
  double training = 0.0, judging = 0.0, loss_of_judges = 0.0;
};

class Run {
 public:
  Run(const RunRows& rows, const RoundSettings& settings, Table<double> scores)
      : rows_(rows),
        settings_(settings),
        scores_(scores),
        ranks_(settings.growth.ranks),
        n_(rows.keys.size()),
        n_binned_(static_cast<std::size_t>(rows.table.n_rows())),
        n_all_(static_cast<std::size_t>(rows.y.width)),
        weight_(rows.weight.empty() ? rows.weight : rows.weight.first(n_)),
        gradients_(make_buffer<double>(2 * scores.n_rows, n_)),
        mixed_(make_buffer<double>(2, n_outputs_of(grown_for(0)) > 1 ? n_ : 0)),
        losses_(make_buffer<double>(std::max(n_, n_all_ - n_))),
        training_(queries_from(0, n_)),
        judging_(queries_from(n_, n_all_ - n_)),
        leaf_memory_(make_buffer<std::int32_t>(n_all_)),
        growing_memory_(make_buffer<std::int32_t>(n_)),
        sent_memory_(make_buffer<std::int32_t>(n_binned_)),
        leaf_(leaf_memory_.get(), n_all_),
        by_row_(list_places(rows.table)) {
    fill(leaf_, kLeaf);
    if (thread_work.call && !thread_work.call->scratch_folder().empty()) memory_in_files_.emplace();
    if (!ranks_) return;
    if (rows.table.is_sparse() || is_ranking())
      throw std::invalid_argument("several ranks must have dense tables, and no rankings");
    const std::array<std::int64_t, 2> n{std::ssize(rows.keys), width_of_judges()};
    const std::array<std::span<const double>, 2> weights{weight_, weight_of(n_, n_all_ - n_)};
    const std::vector<RowCount> counts = count_rows_over(ranks_, n, weights);
    of_training_ = counts[0];
    of_judges_ = counts[1];
    if (of_training_.n == 0) throw std::invalid_argument("no rank has a training row");
  }

  void make(std::int64_t number, RunTrees& trees) {
    const std::span<const Goal> goals = grown_for(number);
    const RoundDraws draws({settings_.n_features, rows_.n_thresholds, n_outputs_of(goals),
                            settings_.growth.feature_order},
                           rows_.seed, number);
    deal_rows(draws.odd);
    set_gradients();
    if (!draws.factors.empty()) mix_gradients(goals, draws.factors);
    const Derivatives response = response_of(draws, goals[0]);
    LargestDerivatives largest = find_largest(response);
    if (largest.n_rows == 0) {
      deal_rows_by_least_key(draws.odd);
      largest = find_largest(response);
    }
    BinnedTree tree = grow(draws, response, largest);
    send_values(tree.columns);
    const std::size_t m = tree.columns.left.size();
    set_steps(tree, trees);
    add_steps({trees.value.data() + trees.value.size() - m * n_outputs(),
               static_cast<std::int64_t>(m), scores_.n_rows});
    trees.root.push_back(std::ssize(trees.nodes.left));
    append(tree.columns, trees.nodes);
    for (const std::size_t v : indices(m)) trees.rows.push_back(tree.sums[3 * v + 2]);
  }

  // is_watched: whether mean losses are computed.
  RoundScores score(bool is_watched) {
    if (ranks_) return score_over_ranks(is_watched);
    RoundScores scores;
    scores.loss_of_judges = loss_of_judges();
    if (is_watched) std::tie(scores.training, scores.judging) = watch();
    return scores;
  }
  bool has_judges() const { return ranks_ ? of_judges_.n > 0 : n_all_ > n_; }

 private:
  std::pair<double, double> watch() {
    const auto score = [&](std::size_t first, std::size_t n, const Queries& queries) {
      if (n == 0) return 0.0;
      const auto weight = weight_of(first, n);
      if (is_ranking()) return -mean_ranking_loss(queries, scores_.data + first, weight);
      return -sum_over_goals([&](const Goal& goal, std::span<const double> y) {
        return mean_loss(goal.loss, y.subspan(first, n), scores_of(goal, first), weight,
                         {losses_.get(), n});
      });
    };
    return {score(0, n_, training_), score(n_, n_all_ - n_, judging_)};
  }

  // The same for the rows of all ranks. Rank 0 shares its scores, as they decide about further
  // rounds.
  RoundScores score_over_ranks(bool is_watched) {
    if (kind() == LossKind::custom) return {};
    std::vector<LossRows> rows;
    std::vector<std::int64_t> n;
    const auto add = [&](std::size_t first, std::size_t size, const RowCount& count) {
      each_goal([&](const Goal& goal, std::span<const double> y) {
        rows.push_back(
            {goal.loss, y.subspan(first, size), scores_of(goal, first), weight_of(first, size)});
        n.push_back(count.n);
      });
    };
    if (is_watched) add(0, n_, of_training_);
    if (has_judges()) add(n_, n_all_ - n_, of_judges_);
    if (rows.empty()) return {};
    const std::vector<double> sums = sum_losses_over(*ranks_, rows, n);
    auto next = sums.begin();
    RoundScores scores;
    if (is_watched)
      scores.training =
          -sum_over_goals([&](const Goal&, auto) { return *next++ / of_training_.weight; });
    if (has_judges()) {
      const auto first = next;
      scores.loss_of_judges = sum_over_goals([&](const Goal&, auto) { return *next++; });
      next = first;
      if (is_watched)
        scores.judging =
            -sum_over_goals([&](const Goal&, auto) { return *next++ / of_judges_.weight; });
    }
    std::array<double, 3> shared{scores.training, scores.judging, scores.loss_of_judges};
    share_over(ranks_, shared);
    return {shared[0], shared[1], shared[2]};
  }

  LossKind kind() const { return settings_.goals[0].loss.kind; }
  bool is_ranking() const { return kind() == LossKind::ranking; }
  static std::size_t n_outputs_of(std::span<const Goal> goals) {
    std::int64_t sum = 0;
    for (const Goal& goal : goals) sum += goal.n_outputs;
    return static_cast<std::size_t>(sum);
  }
  // What a tree grows for: all goals of classes, as it does for the classes of one; of numbers each
  // has its turn. The others take the cuts that serve them, by votes of their own.
  std::span<const Goal> grown_for(std::int64_t number) const {
    if (kind() == LossKind::classes) return settings_.goals;
    const std::size_t n_goals = settings_.goals.size();
    return settings_.goals.subspan(static_cast<std::size_t>(number) % n_goals, 1);
  }
  std::span<const double> targets(const Goal& goal) const {
    return {rows_.y.row(goal.target), n_all_};
  }
  // Some rows of a table of outputs.
  template <class T>
  static Table<T> part(const Table<T>& table, const Goal& goal) {
    return {table.row(goal.first), goal.n_outputs, table.width};
  }
  Table<const double> scores_of(const Goal& goal, std::size_t first = 0) const {
    return {scores_.row(goal.first) + first, goal.n_outputs, scores_.width};
  }
  const ScaledLoss& scaled_of(const Goal& goal) const {
    return scaled_[static_cast<std::size_t>(&goal - settings_.goals.data())];
  }
  template <class F>
  void each_goal(const F& f) const {
    for (const Goal& goal : settings_.goals) f(goal, targets(goal));
  }
  template <class F>
  double sum_over_goals(const F& f) const {
    double sum = 0.0;
    each_goal([&](const Goal& goal, std::span<const double> y) { sum += goal.share * f(goal, y); });
    return sum;
  }
  Queries queries_from(std::size_t first, std::size_t n) const {
    if (!is_ranking()) return {};
    return queries_of(rows_.goal, rows_.query.subspan(first, n), {rows_.y.row(0) + first, n});
  }
  std::span<const double> weight_of(std::size_t first, std::size_t n) const {
    return rows_.weight.empty() ? rows_.weight : rows_.weight.subspan(first, n);
  }
  std::int64_t width_of_judges() const { return static_cast<std::int64_t>(n_all_ - n_); }
  std::size_t n_outputs() const { return static_cast<std::size_t>(scores_.n_rows); }
  std::int64_t width() const { return static_cast<std::int64_t>(n_); }
  Table<double> gradient() const { return {gradients_.get(), scores_.n_rows, width()}; }
  Table<double> hessian() const {
    return {gradient().row(scores_.n_rows), scores_.n_rows, width()};
  }

  void deal_rows(std::uint64_t odd) {
    const RoundLot lot(odd, settings_.subsample);
    deal_rows_by([&](std::size_t i) { return lot.grows(rows_.keys[i]); });
  }
  // Lets the rows of the least key grow: documents of a query have the same.
  void deal_rows_by_least_key(std::uint64_t odd) {
    const RoundLot lot(odd, settings_.subsample);
    auto least = std::numeric_limits<std::uint64_t>::max();
    for (const auto part : chunks(rows_.keys))
      for (const std::uint64_t key : part) least = std::min(least, lot.mixed(key));
    least_over(ranks_, least);
    deal_rows_by([&](std::size_t i) { return lot.mixed(rows_.keys[i]) == least; });
  }

  template <class Grows>
  void deal_rows_by(const Grows& grows) {
    const std::size_t n_growing = part_rows(n_, grows, growing_memory_.get(), sent_memory_.get());
    growing_ = {growing_memory_.get(), n_growing};
    n_others_ = n_ - n_growing;
    sent_ = {sent_memory_.get(), n_others_ + n_binned_ - n_};
    for (const std::size_t i : indices(n_binned_ - n_))
      sent_[n_others_ + i] = static_cast<std::int32_t>(n_ + i);
  }

  void set_gradients() {
    scaled_.clear();
    if (ranks_)
      take_scales_over_ranks();
    else
      each_goal([&](const Goal& goal, std::span<const double> y) {
        scaled_.push_back(scaled(goal.loss, y.first(n_), scores_of(goal)));
      });
    if (kind() == LossKind::custom)
      std::ranges::copy(rows_.gradients.values(), gradients_.get());
    else if (is_ranking())
      return compute_ranking_gradients(training_, scores_.data, weight_, settings_.growth.n_threads,
                                       {gradients_.get(), n_}, {gradients_.get() + n_, n_});
    else
      each_goal([&](const Goal& goal, std::span<const double> y) {
        compute_gradients(scaled_of(goal), y.first(n_), scores_of(goal), part(gradient(), goal),
                          part(hessian(), goal));
      });
    scale_gradients(weight_, {gradients_.get(), 2 * scores_.n_rows, width()});
  }

  void take_scales_over_ranks() {
    std::vector<LossRows> rows;
    each_goal([&](const Goal& goal, std::span<const double> y) {
      rows.push_back({goal.loss, y.first(n_), scores_of(goal), {}});
    });
    scaled_ = scaled_over(*ranks_, rows, std::vector(rows.size(), of_training_.n));
  }

  // Losses count in units of their dispersion, so that no unit of a number matters.
  void take_voters() {
    voters_.clear();
    each_goal([&](const Goal& goal, std::span<const double> y) {
      const double dispersion =
          dispersion_of(scaled_of(goal), y.first(n_), scores_of(goal), weight_,
                        part(gradient(), goal), part(hessian(), goal));
      voters_.push_back({goal.first, goal.n_outputs, 1.0 / dispersion});
    });
  }
  // The same by sums over all ranks, in the order of each_dispersion_term.
  void take_voters(std::span<const std::int64_t> sums) {
    voters_.clear();
    auto largest = largest_terms_.begin();
    auto whole = sums.begin();
    each_goal([&](const Goal& goal, std::span<const double>) {
      std::vector<double> of_goal;
      for (std::size_t i = 0; i < n_terms_of(goal); ++i)
        of_goal.push_back(number_of(*whole++, *largest++, of_training_.n));
      const double dispersion = dispersion_of_sums(scaled_of(goal), of_goal, of_training_.weight);
      voters_.push_back({goal.first, goal.n_outputs, 1.0 / dispersion});
    });
  }

  // Calls f with each column of numbers by whose sums dispersions are computed.
  template <class F>
  void each_dispersion_term(const F& f) const {
    each_goal([&](const Goal& goal, std::span<const double> y) {
      Buffer<double> room;
      for (const auto& term :
           dispersion_terms(scaled_of(goal), y.first(n_), scores_of(goal), weight_,
                            part(gradient(), goal), part(hessian(), goal), room))
        f(term);
    });
  }
  static std::size_t n_terms_of(const Goal& goal) {
    return has_known_scale(goal.loss) ? 0 : has_gradient_dispersion(goal.loss) ? 2 : 1;
  }
  std::size_t n_terms() const {
    std::size_t n = 0;
    for (const Goal& goal : settings_.goals) n += n_terms_of(goal);
    return n;
  }

  RoundRows round_rows() const {
    return {leaf_, growing_, sent_.first(n_others_), gradient(), hessian()};
  }

  // Finds the largest derivatives of growing rows; with ranks in one message also what decides the
  // units of all other sums of the round.
  LargestDerivatives find_largest(const Derivatives& response) {
    LargestDerivatives largest = largest_derivatives(response, growing_);
    if (!ranks_) return largest;
    std::vector<double> numbers{largest.gradient, largest.hessian};
    each_dispersion_term(
        [&](std::span<const double> term) { numbers.push_back(largest_number(term)); });
    const std::size_t n_before = numbers.size(), n_of_set = 2 * n_outputs();
    numbers.resize(n_before + 2 * n_of_set);
    double* const by_output = numbers.data() + n_before;
    find_largest_by_output(round_rows(), {by_output, scores_.n_rows, 2},
                           {by_output + n_of_set, scores_.n_rows, 2});
    reduce_over(ranks_, {&largest.n_rows, 1}, numbers);
    n_growing_ = largest.n_rows;
    const auto at = [&](std::size_t i) { return numbers.begin() + static_cast<std::ptrdiff_t>(i); };
    largest_terms_.assign(at(2), at(n_before));
    largest_by_output_.assign(at(n_before), numbers.end());
    return {numbers[0], numbers[1], n_growing_};
  }

  // Outputs take their factors in the order of the goals, wherever they stand.
  void mix_gradients(std::span<const Goal> goals, std::span<const double> factors) {
    const Table<double> mixed{mixed_.get(), 2, width()};
    fill(mixed.values(), 0.0);
    for (const Goal& goal : goals) {
      const auto n = static_cast<std::size_t>(goal.n_outputs);
      add_mixed(part(gradient(), goal), part(hessian(), goal), factors.first(n), mixed);
      factors = factors.subspan(n);
    }
  }

  // The goal is the only one that the tree grows for, unless gradients are mixed.
  Derivatives response_of(const RoundDraws& draws, const Goal& goal) const {
    const bool is_mixed = !draws.factors.empty();
    const std::span g(is_mixed ? mixed_.get() : gradient().row(goal.first), n_);
    const std::span h(is_mixed ? mixed_.get() + n_ : hessian().row(goal.first), n_);
    return response_of_round(g, h, rows_.keys, draws.other_odd, settings_.subsample >= 1.0);
  }

  BinnedTree grow(const RoundDraws& draws, const Derivatives& response,
                  const LargestDerivatives& largest) {
    BinnedTable table = rows_.table;
    table.stored.by_row = &by_row_;
    if (draws.n_edges > 0) {
      const std::size_t n_features = rows_.table.n_bins.size();
      const auto p = static_cast<std::int64_t>(n_features);
      if (!table.is_sparse() && !coarse_)
        coarse_ = make_buffer<std::uint8_t>(n_features, n_binned_);
      const Table<std::uint8_t> coarse{coarse_.get(), p, table.codes.of_features.width};
      coarsen(rows_.table, draws.features, draws.n_edges, draws.key_of_edges,
              settings_.growth.feature_order, coarser_, coarse);
      table.n_bins = coarser_.n_bins;
      table.low = coarser_.low;
      table.high = coarser_.high;
      if (table.is_sparse()) {
        table.stored.into = coarser_.into;
        table.stored.zero = coarser_.zero;
      } else {
        table.codes = {coarse, {}};
      }
    }
    return grow_gradients(table, {growing_, sent_}, largest, draws.features, settings_.growth,
                          response, growth_memory(), leaf_.first(n_binned_));
  }

  // Memory stays for later calls, as the first access to new memory takes longer than small trees;
  // files do not stay.
  GrowthMemory& growth_memory() {
    thread_local GrowthMemory kept;
    return memory_in_files_ ? *memory_in_files_ : kept;
  }

  // A threshold may lie anywhere between values of bins, so bins would not tell all rows apart.
  void send_values(const TreeColumns& tree) {
    if (n_binned_ == n_all_) return;
    const TreeView view{tree.feature,      tree.threshold,      tree.left,
                        tree.default_left, tree.category_start, tree.categories};
    const std::span<std::int32_t> leaf = leaf_.subspan(n_binned_);
    if (rows_.stored_values.start.empty())
      apply(view, rows_.values, settings_.growth.n_threads, leaf);
    else
      apply(view, rows_.stored_values, settings_.growth.n_threads, leaf);
  }

  // Appends the steps of the nodes.
  void set_steps(const BinnedTree& tree, RunTrees& trees) {
    const std::size_t m = tree.columns.left.size(), before = trees.value.size();
    trees.value.resize(before + m * n_outputs());
    trees.deviation.resize(before + m * n_outputs());
    weights_.resize(settings_.goals.size() * m);
    const auto of_nodes = [&](std::vector<double>& all) {
      return Table<double>{all.data() + before, static_cast<std::int64_t>(m), scores_.n_rows};
    };
    const Table<double> step = of_nodes(trees.value), deviation = of_nodes(trees.deviation);
    const Table<double> weight{weights_.data(), std::ssize(settings_.goals), step.n_rows};
    if (ranks_) {
      set_steps_over_ranks(tree.columns, step, deviation, weight);
    } else {
      take_voters();
      round_steps(Shape{tree.columns.left}, round_rows(), vote_of(tree.columns), step, deviation,
                  weight);
    }
    for (double& one : step.values()) one *= settings_.learning_rate;
    for (double& one : deviation.values()) one *= settings_.learning_rate;
  }

  RoundVote vote_of(const TreeColumns& tree) const {
    return {settings_.l2,   voters_,      settings_.others,          settings_.curvature,
            settings_.stop, tree.feature, settings_.growth.monotonic};
  }

  // Sums by leaf go to rank 0, which computes the steps and shares them.
  void set_steps_over_ranks(const TreeColumns& tree, Table<double> step, Table<double> deviation,
                            Table<double> weight) {
    const std::size_t m = tree.left.size(), n_of_set = 2 * m * n_outputs();
    std::vector<std::int64_t> words(2 * n_of_set + n_terms());
    const auto sums_of = [&](std::size_t set, std::int64_t n) {
      return RowSetSums{
          n,
          {largest_by_output_.data() + 2 * set * n_outputs(), scores_.n_rows, 2},
          {words.data() + set * n_of_set, scores_.n_rows, static_cast<std::int64_t>(2 * m)}};
    };
    const RoundSums sums{sums_of(0, n_growing_), sums_of(1, of_training_.n - n_growing_)};
    add_up_leaves(round_rows(), sums);
    const std::span of_terms = std::span(words).subspan(2 * n_of_set);
    auto next = std::pair(of_terms.begin(), largest_terms_.begin());
    each_dispersion_term([&](std::span<const double> term) {
      *next.first++ = whole_sum(term, *next.second++, of_training_.n);
    });
    ranks_->reduce(words, words.size());
    std::vector<double> shared(2 * step.values().size());
    const auto middle = shared.begin() + std::ssize(step.values());
    if (ranks_->is_rank_0()) {
      take_voters(of_terms);
      round_steps(Shape{tree.left}, sums, vote_of(tree), step, deviation, weight);
      std::ranges::copy(step.values(), shared.begin());
      std::ranges::copy(deviation.values(), middle);
    }
    share_over(ranks_, shared);
    std::copy(shared.begin(), middle, step.data);
    std::copy(middle, shared.end(), deviation.data);
  }

  void add_steps(Table<const double> value) {
    for (std::int64_t k = 0; k < scores_.n_rows; ++k) {
      double* const to = scores_.row(k);
      for (const std::size_t i : indices(n_all_)) to[i] += value.row(leaf_[i])[k];
    }
  }

  double loss_of_judges() {
    const std::size_t n_judging = n_all_ - n_;
    if (n_judging == 0 || kind() == LossKind::custom) return 0.0;
    const auto weight = weight_of(n_, n_judging);
    if (is_ranking()) return ranking_loss(judging_, scores_.data + n_, weight);
    const std::span<double> losses(losses_.get(), n_judging);
    return sum_over_goals([&](const Goal& goal, std::span<const double> y) {
      losses_of(goal.loss, y.subspan(n_), scores_of(goal, n_), losses);
      return sum_of(losses, weight);
    });
  }

  const RunRows& rows_;
  const RoundSettings& settings_;
  Table<double> scores_;
  Ranks* ranks_;
  std::size_t n_, n_binned_, n_all_;  // rows of this rank
  std::span<const double> weight_;
  Buffer<double> gradients_;  // gradients, then Hessians, (n_outputs, n) each
  Buffer<double> mixed_;      // gradient and Hessian, (n,) each, where a goal has several outputs
  std::vector<ScaledLoss> scaled_;  // of each goal, by the rows that train
  std::vector<Voters> voters_;
  Buffer<double> losses_;
  Queries training_, judging_;  // where rows are ranked
  Buffer<std::int32_t> leaf_memory_, growing_memory_, sent_memory_;
  std::span<std::int32_t> leaf_;            // (n_all,)
  PlacesByRow by_row_;                      // of a sparse table
  std::span<std::int32_t> growing_, sent_;  // of the rows that are sent, others come first
  std::size_t n_others_ = 0;
  Buffer<std::uint8_t> coarse_;
  std::optional<GrowthMemory> memory_in_files_;
  CoarserBins coarser_;
  std::vector<double> weights_;
  // With ranks, the rows of all of them; of a round those that grow, and the largest numbers.
  RowCount of_training_, of_judges_;
  std::int64_t n_growing_ = 0;
  std::vector<double> largest_terms_;      // of each column of dispersion terms
  std::vector<double> largest_by_output_;  // (2, n_outputs, 2) as in RowSetSums
};

// Counts the scores that have not beaten the best one.
class Gains {
 public:
  Gains(std::span<const double> before, double tol) : tol_(tol) {
    for (const double score : before) take(score);
  }
  void take(double score) {
    const bool gains = is_first_ || score > best_ + tol_;
    best_ = gains ? score : best_;
    n_without_ = gains ? 0 : n_without_ + 1;
    is_first_ = false;
  }
  std::int64_t n_without() const { return n_without_; }

 private:
  double tol_, best_ = 0.0;
  bool is_first_ = true;
  std::int64_t n_without_ = 0;
};

}  // namespace

std::int64_t rounds_without_gain(std::span<const double> scores, double tol) {
  return Gains(scores, tol).n_without();
}

RunTrees make_rounds(const RunRows& rows, const RoundSettings& settings, const Watch& watch,
                     std::int64_t first, std::int64_t last, Table<double> scores) {
  RunTrees trees;
  Run run(rows, settings, scores);
  Gains gains(watch.before, watch.tol);
  for (std::int64_t number = first; number < last; ++number) {
    run.make(number, trees);
    const auto [training, judging, loss_of_judges] = run.score(watch.is_on);
    trees.losses.push_back(loss_of_judges);
    if (!watch.is_on) continue;
    trees.scores.insert(trees.scores.end(), {training, judging});
    gains.take(run.has_judges() ? judging : training);
    if (watch.n_iter_no_change > 0 && gains.n_without() >= watch.n_iter_no_change) break;
  }
  finish_columns(trees.nodes);
  return trees;
}

}  // namespace certree
