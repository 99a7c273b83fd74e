// MonotonicSigns are made anew whenever they are asked for: they would be more to keep than all
// else.
#include "ensembles/parts.hpp"

#include "ensembles/draws_of_round.hpp"
#include "grow/add_up.hpp"
#include "grow/gradients.hpp"

namespace certree {
namespace {

constexpr std::size_t kBlock = 1024;

// Memory that a thread writes to in one call after the other, as its first touch takes longer than
// what is done with it; that of large parts goes back.
template <class T>
class Kept {
 public:
  Kept(std::vector<T>& memory, std::size_t size) : memory_(memory) {
    if (memory_.size() < size) memory_.resize(size);
  }
  ~Kept() {
    if (memory_.size() * sizeof(T) > kMostBytes) std::vector<T>().swap(memory_);
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  T* data() const { return memory_.data(); }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 24;

  std::vector<T>& memory_;
};

// All bits of a row that grows, and none of others: what is taken by them needs no branch.
using Growing = std::array<std::uint64_t, kBlock>;

// Marks rows that grow. Returns the least mixed key.
CERTREE_SIMD_CLONES std::uint64_t mark_growing(const std::uint64_t* key, std::size_t n,
                                               const PartDraws& draws, Growing& growing) noexcept {
  const RoundLot lot(draws.odd, draws.subsample);
  const std::uint64_t odd = draws.odd, limit = lot.limit, by_least = draws.least;
  const bool all = lot.all_grow, least_grows = draws.least_grows;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t mixed = key[i] * odd;
    least = mixed < least ? mixed : least;
    const bool grows = least_grows ? mixed == by_least : all | (mixed < limit);
    growing[i] = grows ? ~std::uint64_t{0} : 0;
  }
  return least;
}

std::size_t count(const Growing& growing, std::size_t n) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += growing[i] & 1;
  return static_cast<std::size_t>(sum);
}

// Numbers without signs, as bits, which are in their order; `most` of rows that grow, and of
// others, which count for nothing where they are no numbers.
CERTREE_SIMD_CLONES void take_largest(const double* column, const Growing& growing, std::size_t n,
                                      std::uint64_t* most) noexcept {
  constexpr auto kMost = std::bit_cast<std::int64_t>(kInfinity);
  std::int64_t of_growing = 0, of_others = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<std::int64_t>(std::abs(column[i]));
    const std::int64_t known = bits <= kMost ? bits : 0;
    const auto mask = static_cast<std::int64_t>(growing[i]);
    of_growing = std::max(of_growing, known & mask);
    of_others = std::max(of_others, known & ~mask);
  }
  most[0] = std::max(most[0], static_cast<std::uint64_t>(of_growing));
  most[1] = std::max(most[1], static_cast<std::uint64_t>(of_others));
}

// What the gradients of rows are times for the tree that they grow.
CERTREE_SIMD_CLONES void take_factors(const std::uint64_t* key, std::size_t n, std::uint64_t odd,
                                      const double* among, double* factor) noexcept {
  for (std::size_t i = 0; i < n; ++i) factor[i] = among[key[i] * odd >> 56];
}

// `most`: of gradient and Hessian of growing rows as Gradients::largest has them, as bits.
CERTREE_SIMD_CLONES void take_largest_of_tree(const double* gradient, const double* hessian,
                                              const double* factor, const Growing& growing,
                                              std::size_t n, std::uint64_t* most) noexcept {
  std::uint64_t g = most[0], h = most[1];
  for (std::size_t i = 0; i < n; ++i) {
    g = std::max(g, std::bit_cast<std::uint64_t>(std::abs(factor[i] * gradient[i])) & growing[i]);
    h = std::max(h, std::bit_cast<std::uint64_t>(factor[i] * hessian[i] + 0.0) & growing[i]);
  }
  most[0] = g;
  most[1] = h;
}

// The items of growing rows, zeros of others, and sums of gradients and Hessians of the first.
CERTREE_SIMD_CLONES void itemise(const Gradients& target, const double* gradient,
                                 const double* hessian, const double* factor,
                                 const Growing& growing, std::size_t n, GradientItem* items,
                                 std::int64_t* total) noexcept {
  const Gradients::Units units = target.units();  // at hand: what is written might else change it
  std::int64_t g = 0, h = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto mask = static_cast<std::int64_t>(growing[i]);
    const std::int64_t of_gradient = units.gradient.whole(factor[i] * gradient[i]) & mask;
    const std::int64_t of_hessian = units.hessian.whole(factor[i] * hessian[i]) & mask;
    items[i] = Gradients::item(of_gradient, of_hessian, mask & 1);
    g += of_gradient;
    h += of_hessian;
  }
  total[0] += g;
  total[1] += h;
}

// MonotonicSigns as whole numbers in the unit of a row's side of the tree. is_other: 0 or 1.
CERTREE_SIMD_CLONES void take_whole(const double* slope, const std::int64_t* is_other,
                                    std::size_t n, const FixedPoint& of_growing,
                                    const FixedPoint& of_others, std::int64_t* whole) noexcept {
  const FixedPoint one = of_growing, two = of_others;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t here = one.whole(slope[i]), there = two.whole(slope[i]);
    whole[i] = is_other[i] ? there : here;
  }
}

// Gradients and Hessians of a block of rows, times their weights, and what a tree grows on.
class BlockSlopes {
 public:
  explicit BlockSlopes(const PartRows& rows)
      : all_(rows),
        n_outputs_(rows.scores.n_rows),
        slopes_(make_buffer<double>(2 * n_outputs_, kBlock)),
        mixed_(make_buffer<double>(2, kBlock)) {}

  // Of rows first, ..., first + n - 1.
  void make(std::size_t first, std::size_t n) {
    first_ = first;
    weight_ = all_.weight.empty() ? all_.weight : all_.weight.subspan(first, n);
    keys_ = all_.keys.subspan(first, n);
    for (const PartGoal& goal : all_.goals)
      compute_gradients(goal.loss, targets(goal), scores_of(goal), part(gradient(), goal),
                        part(hessian(), goal));
    scale_gradients(weight_, {slopes_.get(), 2 * n_outputs_, width()});
  }

  // Those that are made next forget these.
  std::vector<std::span<const double>> dispersion_terms(const PartGoal& goal) {
    return certree::dispersion_terms(goal.loss, targets(goal), scores_of(goal), weight_,
                                     part(gradient(), goal), part(hessian(), goal), terms_);
  }

  Table<double> gradient() const { return {slopes_.get(), n_outputs_, width()}; }
  Table<double> hessian() const { return {gradient().row(n_outputs_), n_outputs_, width()}; }

  Derivatives response(const PartDraws& draws) {
    const auto goals = all_.goals.subspan(draws.first_goal, draws.n_goals);
    const std::size_t n = keys_.size();
    std::span<const double> g(gradient().row(goals[0].first), n),
        h(hessian().row(goals[0].first), n);
    if (!draws.factors.empty()) {
      const Table<double> both{mixed_.get(), 2, width()};
      std::ranges::fill(both.values(), 0.0);
      auto factors = draws.factors;
      for (const PartGoal& goal : goals) {
        const auto own = static_cast<std::size_t>(goal.n_outputs);
        add_mixed(part(gradient(), goal), part(hessian(), goal), factors.first(own), both);
        factors = factors.subspan(own);
      }
      g = {both.row(0), n};
      h = {both.row(1), n};
    }
    return response_of_round(g, h, keys_, draws.other_odd, draws.subsample >= 1.0);
  }

 private:
  std::int64_t width() const { return std::ssize(keys_); }
  std::span<const double> targets(const PartGoal& goal) const {
    return {all_.y.row(goal.target) + first_, keys_.size()};
  }
  Table<const double> scores_of(const PartGoal& goal) const {
    return {all_.scores.row(goal.first) + first_, goal.n_outputs, all_.scores.width};
  }
  static Table<double> part(const Table<double>& table, const PartGoal& goal) {
    return {table.row(goal.first), goal.n_outputs, table.width};
  }

  const PartRows& all_;
  std::int64_t n_outputs_;
  std::size_t first_ = 0;  // of the block
  std::span<const double> weight_;
  std::span<const std::uint64_t> keys_;
  Buffer<double> slopes_, mixed_, terms_;
};

// Calls f(place, term) with each row of two terms of the dispersion of each goal.
template <class F>
void each_term(const PartRows& rows, BlockSlopes& gradients, const F& f) {
  for (std::size_t g = 0; g < rows.goals.size(); ++g)
    for (std::size_t i = 2 * g; const auto& term : gradients.dispersion_terms(rows.goals[g]))
      f(i++, term);
}

// Calls f(first, n) of one block of rows after the other, whose rows take so many steps each.
template <class F>
void by_blocks(std::size_t n, std::int64_t steps, const F& f) {
  for (std::size_t first = 0; first < n; first += kBlock) {
    const std::size_t some = std::min(kBlock, n - first);
    count_steps(static_cast<std::int64_t>(some) * steps);
    f(first, some);
  }
}

void take_factors(const Derivatives& response, std::size_t n, double* factor) {
  const RowFactors& drawn = response.factors;
  if (drawn.keys.empty())
    std::fill_n(factor, n, 1.0);
  else
    take_factors(drawn.keys.data(), n, drawn.odd, drawn.among.data(), factor);
}

// Numbers of the rows of a block that grow, and of the others; both have room for one more.
std::size_t deal(const Growing& growing, std::size_t first, std::size_t n, std::int32_t* ones,
                 std::int32_t* others) {
  std::size_t n_growing = 0;
  for (std::size_t i = 0; i < n; ++i) {
    // No branch: it would be guessed wrong too often.
    ones[n_growing] = others[i - n_growing] = static_cast<std::int32_t>(first + i);
    n_growing += growing[i] & 1;
  }
  return n_growing;
}

// Throws as growth in memory does where a growing row has gradients that are no numbers.
void expect_numbers(const Derivatives& response, const Growing& growing, std::size_t n,
                    const std::uint64_t* most) {
  if (std::max(most[0], most[1]) < std::bit_cast<std::uint64_t>(kInfinity)) return;
  std::array<std::int32_t, kBlock + 1> ones, others;
  const std::size_t n_growing = deal(growing, 0, n, ones.data(), others.data());
  Gradients::refuse(response, std::span(ones).first(n_growing));
}

}  // namespace

PartLargest part_largest(const PartRows& rows, const PartDraws& draws) {
  const auto n_outputs = static_cast<std::size_t>(rows.scores.n_rows);
  const std::size_t n_terms = 2 * rows.goals.size();
  PartLargest made{std::vector<double>(2 + n_terms + 4 * n_outputs), 0,
                   std::numeric_limits<std::uint64_t>::max()};
  // Of the tree; then of gradients and Hessians in turn, those of growing rows and of others.
  std::array<std::uint64_t, 2> of_tree{};
  std::vector<std::uint64_t> most(4 * n_outputs);
  BlockSlopes gradients(rows);
  Growing growing;
  std::array<double, kBlock> factor;
  by_blocks(rows.keys.size(), 2 + 4 * rows.scores.n_rows, [&](std::size_t first, std::size_t n) {
    made.least = std::min(made.least, mark_growing(rows.keys.data() + first, n, draws, growing));
    made.n_growing += static_cast<std::int64_t>(count(growing, n));
    gradients.make(first, n);
    const Derivatives response = gradients.response(draws);
    take_factors(response, n, factor.data());
    take_largest_of_tree(response.gradient.data(), response.hessian.data(), factor.data(), growing,
                         n, of_tree.data());
    expect_numbers(response, growing, n, of_tree.data());
    each_term(rows, gradients, [&](std::size_t i, std::span<const double> term) {
      made.largest[2 + i] = std::max(made.largest[2 + i], largest_number(term));
    });
    for (std::size_t k = 0; k < n_outputs; ++k) {
      take_largest(gradients.gradient().row(k), growing, n, most.data() + 4 * k);
      take_largest(gradients.hessian().row(k), growing, n, most.data() + 4 * k + 2);
    }
  });
  for (std::size_t i = 0; i < 2; ++i) made.largest[i] = std::bit_cast<double>(of_tree[i]);
  auto to = made.largest.begin() + 2 + static_cast<std::ptrdiff_t>(n_terms);
  for (const std::size_t side : {0, 1})
    for (std::size_t k = 0; k < 2 * n_outputs; ++k)
      *to++ = std::bit_cast<double>(most[2 * k + side]);
  return made;
}

PartItems part_items(const PartRows& rows, const PartDraws& draws, const LargestOfAll& largest,
                     std::span<std::int32_t> order, Table<std::int64_t> items) {
  PartItems made{0, {}, std::vector<std::int64_t>(2 * rows.goals.size())};
  const Gradients target({}, {largest.gradient, largest.hessian, largest.n_growing},
                         BinnedGrowth{});
  std::vector<FixedPoint> of_terms;
  for (const double one : largest.of_dispersion) of_terms.emplace_back(one, largest.n);
  static_assert(sizeof(GradientItem) == 2 * sizeof(std::int64_t));
  auto* const as_items = reinterpret_cast<GradientItem*>(items.data);
  thread_local std::vector<std::int32_t> memory;
  const Kept<std::int32_t> all_others(memory, rows.keys.size());
  std::size_t n_growing = 0, n_others = 0;
  BlockSlopes gradients(rows);
  Growing growing;
  std::array<double, kBlock> factor;
  std::array<std::int32_t, kBlock + 1> ones, others;
  by_blocks(rows.keys.size(), 2 + 4 * rows.scores.n_rows, [&](std::size_t first, std::size_t n) {
    mark_growing(rows.keys.data() + first, n, draws, growing);
    const std::size_t own = deal(growing, first, n, ones.data(), others.data());
    std::copy_n(ones.data(), own, order.data() + n_growing);
    std::copy_n(others.data(), n - own, all_others.data() + n_others);
    n_growing += own;
    n_others += n - own;
    gradients.make(first, n);
    const Derivatives response = gradients.response(draws);
    take_factors(response, n, factor.data());
    itemise(target, response.gradient.data(), response.hessian.data(), factor.data(), growing, n,
            as_items + first, made.total.data());
    each_term(rows, gradients, [&](std::size_t i, std::span<const double> term) {
      for (const double one : term) made.of_dispersion[i] += of_terms[i].whole(one);
    });
  });
  std::copy_n(all_others.data(), n_others, order.data() + n_growing);
  made.n_growing = made.total[2] = static_cast<std::int64_t>(n_growing);
  return made;
}

namespace {

// Adds lanes of all bins of features up by their places. from: as `bins` has them.
void join_places(const PartLayout& layout, const SumsLayout& bins, const std::int64_t* from,
                 std::int64_t* to) {
  for (std::size_t i = 0; i < layout.features.size(); ++i) {
    const std::int32_t j = layout.features[i];
    const std::uint8_t* const place = layout.place.row(i);
    const std::size_t n_bins = bins.n_bins(j);
    for (std::size_t l = 0; l < Gradients::kLanes; ++l) {
      const std::int64_t* const lane = from + bins.start(j) + l * bins.width(j);
      for (std::size_t b = 0; b < n_bins; ++b) to[place[b]] += lane[b];
      to[place[kMissingBin]] += lane[n_bins];
      to += layout.n_places[i];
    }
  }
}

}  // namespace

void part_sums(const CodesBothWays& codes, const PartLayout& layout,
               std::span<const std::int32_t> order, Table<const std::int64_t> items,
               PartCells cells, Table<std::int64_t> sums, std::span<std::int64_t> squares) {
  const SumsLayout bins(layout.features, layout.n_bins, Gradients::kLanes);
  const auto* const as_items = reinterpret_cast<const GradientItem*>(items.data);
  thread_local std::vector<std::int64_t> memory_of_bins;
  const Kept<std::int64_t> by_bin(memory_of_bins, bins.size());
  fill(sums.values(), std::int64_t{0});
  for (std::int64_t c = 0; c < cells.n_rows; ++c) {
    const std::int64_t* const range = cells.row(c);
    const auto rows = order.subspan(static_cast<std::size_t>(range[0]),
                                    static_cast<std::size_t>(range[1] - range[0]));
    if (!squares.empty()) squares[static_cast<std::size_t>(c)] = Gradients::squares(rows, as_items);
    if (rows.empty()) continue;
    add_up<Gradients>(rows, as_items, codes, layout.features, bins, by_bin.data());
    join_places(layout, bins, by_bin.data(), sums.row(c));
  }
}

void sums_by_bin(const ToldSums& given, Table<std::int64_t> sums) {
  std::vector<std::int64_t> memory(static_cast<std::size_t>(sums.width));
  for (const std::size_t c : indices(given.rows.n_rows, sums.width)) {
    const std::int32_t* const rows = given.rows.row(c);
    std::int64_t* const small = rows[1] >= 0 ? sums.row(rows[1]) : memory.data();
    const std::int64_t* const told = given.told.row(c);
    if (given.columns.empty()) {
      std::copy_n(told, sums.width, small);
    } else {
      std::fill_n(small, sums.width, std::int64_t{0});
      for (std::size_t i = 0; i < given.columns.size(); ++i) small[given.columns[i]] = told[i];
    }
    if (rows[2] < 0) continue;
    const std::int64_t* const all = given.above.row(rows[0]);
    std::int64_t* const large = sums.row(rows[2]);
    for (std::int64_t i = 0; i < sums.width; ++i) large[i] = all[i] - small[i];
  }
}

void part_divide(Table<const std::uint8_t> codes, PartCells cells, const PartCuts& cuts,
                 std::span<std::int32_t> order, Table<std::int64_t> below) {
  thread_local std::vector<std::int32_t> memory;
  const Kept<std::int32_t> room(memory, order.size());
  for (const std::size_t d : indices(cuts.cell.size())) {
    const std::int64_t cell = cuts.cell[d];
    const std::int64_t* const range =
        cell < cells.n_rows ? cells.row(cell) : below.row(cell - cells.n_rows);
    const auto begin = range[0], end = range[1];
    GoesLeft goes_left;
    std::copy_n(cuts.goes_left.row(d), goes_left.size(), goes_left.begin());
    const std::int64_t n_left =
        send(order.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
             CodesOfFeature{codes.row(cuts.feature[d])}, goes_left, room.data());
    std::int64_t* const to = below.row(2 * d);
    to[0] = begin;
    to[1] = to[2] = begin + n_left;
    to[3] = end;
  }
}

namespace {

// The leaf of each row, and of others than growing rows so many more.
void find_leaves(const PartLeaves& leaves, std::int32_t more, std::span<std::int32_t> leaf) {
  fill(leaf, kLeaf);
  for (std::int64_t c = 0; c < leaves.cells.n_rows; ++c) {
    const std::int64_t* const range = leaves.cells.row(c);
    const std::int32_t v =
        leaves.node[static_cast<std::size_t>(c)] + (range[0] < leaves.n_growing ? 0 : more);
    for (const auto part : chunks(leaves.order.data() + range[0], leaves.order.data() + range[1]))
      for (const std::int32_t i : part) leaf[static_cast<std::size_t>(i)] = v;
  }
}

}  // namespace

void part_leaves(const PartRows& rows, const PartLeaves& leaves, std::span<std::int32_t> leaf,
                 RoundSums& sums) {
  const std::int64_t width = sums.growing.whole.width;
  const auto m = static_cast<std::int32_t>(width / 2);
  find_leaves(leaves, m, leaf);
  // Of each output by leaf, those of growing rows before those of others.
  const std::int64_t n_outputs = rows.scores.n_rows;
  std::vector<std::int64_t> whole(checked_size(n_outputs, 2 * width + 2));
  BlockSlopes gradients(rows);
  std::array<std::int64_t, kBlock> is_other, at, of_gradient, of_hessian;
  by_blocks(rows.keys.size(), 2 + 4 * n_outputs, [&](std::size_t first, std::size_t n) {
    gradients.make(first, n);
    std::int32_t* const own = leaf.data() + first;
    for (std::size_t i = 0; i < n; ++i) {
      is_other[i] = own[i] >= m;
      at[i] = own[i] == kLeaf ? 2 * m : own[i];  // behind all others what no cell holds
      own[i] -= is_other[i] ? m : 0;
    }
    for (std::int64_t k = 0; k < n_outputs; ++k) {
      const double *const one = sums.growing.largest.row(k), *const two =
                                                                 sums.others.largest.row(k);
      take_whole(gradients.gradient().row(k), is_other.data(), n,
                 FixedPoint(one[0], sums.growing.n_rows), FixedPoint(two[0], sums.others.n_rows),
                 of_gradient.data());
      take_whole(gradients.hessian().row(k), is_other.data(), n,
                 FixedPoint(one[1], sums.growing.n_rows), FixedPoint(two[1], sums.others.n_rows),
                 of_hessian.data());
      std::int64_t* const to = whole.data() + k * (2 * width + 2);
      for (std::size_t i = 0; i < n; ++i) {
        to[2 * at[i]] += of_gradient[i];
        to[2 * at[i] + 1] += of_hessian[i];
      }
    }
  });
  for (std::int64_t k = 0; k < n_outputs; ++k) {
    const std::int64_t* const from = whole.data() + k * (2 * width + 2);
    std::copy_n(from, width, sums.growing.whole.row(k));
    std::copy_n(from + width, width, sums.others.whole.row(k));
  }
}

void part_add_steps(Table<const double> before, std::span<const std::int32_t> leaf,
                    Table<const double> steps, Table<double> scores) {
  for (std::int64_t k = 0; k < before.n_rows; ++k) {
    const double* const from = before.row(k);
    double* const to = scores.row(k);
    for (const std::size_t i : indices(leaf.size())) to[i] = from[i] + steps.row(leaf[i])[k];
  }
}

}  // namespace certree
