// Growth from sums over bins.
//
// Rows of a node lie together, in the order in which they were given. Either the sums of nodes by
// all features are kept, for those below; or features are drawn in every node, and their sums are
// forgotten. Then rows know their codes, which lie row by row: whenever a node has shrunk to an
// eighth, those of its rows are copied together, so that those of small nodes lie in the cache.

#include "grow/binned_growth.hpp"

#include "grow/gradients.hpp"
#include "grow/kept_histograms.hpp"
#include "grow/outputs.hpp"
#include "grow/sparse_histograms.hpp"
#include "grow/tree_growth.hpp"
#include "grow/weighted.hpp"

#include <array>

namespace certree {
namespace {

// A buffer that is replaced by a larger one if needed.
template <class T>
class GrowingBuffer {
 public:
  // Memory for `size` entries, which may hold those of an earlier call.
  std::span<T> take(std::size_t size) {
    if (size > size_) {
      memory_.reset();
      memory_ = make_buffer<T>(size);
      size_ = size;
    }
    return {memory_.get(), size};
  }

 private:
  std::size_t size_ = 0;
  Buffer<T> memory_;
};

}  // namespace

// -- one tree on gradients

struct GrowthMemory::Arrays {
  HistogramPool dense;
  SparseMemory<Gradients> sparse;
  GrowingBuffer<std::int32_t> growing, others, room;
  GrowingBuffer<Gradients::Item> items;  // by number of row
};

GrowthMemory::GrowthMemory() : arrays_(std::make_unique<Arrays>()) {}
GrowthMemory::~GrowthMemory() = default;

namespace {

std::span<std::int32_t> copy(std::span<const std::int32_t> from,
                             GrowingBuffer<std::int32_t>& memory) {
  const std::span<std::int32_t> to = memory.take(from.size());
  auto at = to.begin();
  for (const auto part : chunks(from)) at = std::ranges::copy(part, at).out;
  return to;
}

// Sums: what keeps those of nodes, in memory of its own.
template <class Sums, class SumsMemory>
BinnedTree grow_by(const BinnedTable& table, const SentRows& rows,
                   const LargestDerivatives& largest, std::span<const std::int32_t> features,
                   const BinnedGrowth& growth, const Derivatives& response,
                   GrowthMemory::Arrays& memory, SumsMemory& of_sums,
                   std::span<std::int32_t> leaf) {
  if (std::max(largest.gradient, largest.hessian) == kInfinity)
    Gradients::refuse(response, rows.growing);
  const Gradients target(response, largest, growth);
  const std::span<std::int32_t> growing = copy(rows.growing, memory.growing);
  const std::span<std::int32_t> others = copy(rows.others, memory.others);
  std::int32_t* const room = memory.room.take(std::max(growing.size(), others.size())).data();
  Gradients::Item* const items = memory.items.take(static_cast<std::size_t>(table.n_rows())).data();
  target.itemise(rows.growing, items);
  NodeTotals totals;
  Gradients::Lanes total = target.total(rows.growing, items);
  sum_over(growth.ranks, total);
  for (std::size_t lane = 0; lane < total.size(); ++lane)
    totals.add(static_cast<std::int32_t>(lane), total[lane]);
  totals.end_node();
  Sums sums(table, growing, totals, features, growth, target, items, of_sums);
  const MovedRows<std::int32_t> moved{growing, others, room, room};
  TreeGrowth tree(table, moved, growth, totals, sums);
  BinnedTree grown{tree.grow(0), {}};
  tree.settle_leaves(grown.columns.left, [&](std::size_t v, std::span<const std::int32_t> some) {
    for (const auto part : chunks(some))
      for (const std::int32_t i : part)
        leaf[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(v);
  });
  for (const std::size_t v : indices(grown.columns.left.size()))
    target.write(totals.of(tree.index_of(v)), grown.sums);
  return grown;
}

}  // namespace

LargestDerivatives largest_derivatives(const Derivatives& response,
                                       std::span<const std::int32_t> growing) {
  return Gradients::largest(response, growing);
}

PlacesByRow list_places(const BinnedTable& table) {
  PlacesByRow all;
  if (!table.is_sparse()) return all;
  const StoredCodes& stored = table.stored;
  const std::size_t p = table.n_bins.size();
  if (table.first_place(p) > std::numeric_limits<std::uint32_t>::max()) throw OutOfMemory();
  // The values of a row are counted two entries behind it, and then taken one behind it.
  all.start.assign(static_cast<std::size_t>(stored.n_rows) + 2, 0);
  for (const auto part : chunks(stored.row))
    for (const std::int32_t row : part) ++all.start[static_cast<std::size_t>(row) + 2];
  std::partial_sum(all.start.begin(), all.start.end(), all.start.begin());
  all.place.resize(stored.row.size());
  for (std::size_t j = 0; j < p; ++j) {
    const std::size_t first = table.first_place(j), missing = table.first_place(j + 1) - 1;
    const auto begin = static_cast<std::size_t>(stored.start[j]);
    const auto end = static_cast<std::size_t>(stored.start[j + 1]);
    count_steps(end - begin);
    for (std::size_t k = begin; k < end; ++k) {
      const std::uint8_t code = stored.code[k];
      const std::int64_t at = all.start[static_cast<std::size_t>(stored.row[k]) + 1]++;
      all.place[static_cast<std::size_t>(at)] =
          static_cast<std::uint32_t>(code == kMissingBin ? missing : first + code);
    }
  }
  all.start.pop_back();
  return all;
}

BinnedTree grow_gradients(const BinnedTable& table, const SentRows& rows,
                          const LargestDerivatives& largest, std::span<const std::int32_t> features,
                          const BinnedGrowth& growth, const Derivatives& response,
                          GrowthMemory& memory, std::span<std::int32_t> leaf) {
  GrowthMemory::Arrays& arrays = memory.arrays();
  if (table.is_sparse())
    return grow_by<SparseHistograms<Gradients>>(table, rows, largest, features, growth, response,
                                                arrays, arrays.sparse, leaf);
  return grow_by<KeptHistograms<Gradients>>(table, rows, largest, features, growth, response,
                                            arrays, arrays.dense, leaf);
}

namespace {

// -- many trees on rows that are drawn

struct WeightsSeen {
  double largest = 0.0;
  bool are_whole = true;

  explicit WeightsSeen(std::span<const double> weight) {
    for (const auto part : chunks(weight))
      for (const double one : part) {
        if (!(one >= 0.0 && one < kInfinity))
          throw std::invalid_argument("weights must be finite and not negative, got " +
                                      std::to_string(one));
        largest = std::max(largest, one);
        are_whole &= one == std::floor(one);
      }
  }
};

// An array of n integers, in a file if the call keeps large arrays there.
struct Integers {
  Buffer<std::int64_t> memory;
  std::span<std::int64_t> values;

  Integers() = default;
  explicit Integers(std::size_t n)
      : memory(make_buffer<std::int64_t>(n)), values(memory.get(), n) {}
};

// Weights as whole numbers: as they are, or in units of a power of two.
struct WholeWeights {
  Integers whole;  // (n,) or empty: each row counts once
  std::int64_t heaviest = 1;
  int unit = 0;

  WholeWeights(std::span<const double> weight, const Bags& bags) {
    const WeightsSeen seen(weight);
    const FixedPoint fixed(seen.largest, bags.drawing.most_rows);
    if (!seen.are_whole) unit = fixed.unit();
    if (unit != 0 && bags.is_balanced)
      throw std::invalid_argument("balanced classes take weights that are integers");
    whole = Integers(weight.size());
    for (const std::size_t i : indices(weight.size())) {
      const double one = weight[i];
      whole.values[i] = seen.are_whole ? static_cast<std::int64_t>(one) : fixed.whole(one);
      heaviest = std::max(heaviest, whole.values[i]);
    }
    if (bags.is_balanced) heaviest = static_cast<std::int64_t>(kMostWhole);
  }

  std::int64_t of(std::size_t i) const { return whole.values.empty() ? 1 : whole.values[i]; }
};

// Weights of drawn rows by which all classes of each column have the same weight, as integers; 0
// for others. class_of(i, k): class of a row in a column, of n_classes[k].
template <class ClassOf>
std::vector<std::int64_t> balanced_weights(std::span<const std::int32_t> count,
                                           const WholeWeights& weight,
                                           std::span<const std::int32_t> n_classes,
                                           const ClassOf& class_of) {
  std::vector<std::size_t> drawn;
  std::vector<double> relative;
  for (const std::size_t i : indices(count.size()))
    if (count[i] > 0 && weight.of(i) > 0) {
      drawn.push_back(i);
      relative.push_back(static_cast<double>(weight.of(i)));
    }
  for (std::size_t k = 0; k < n_classes.size(); ++k) {
    std::vector<std::int64_t> total(static_cast<std::size_t>(n_classes[k]));
    for (const std::size_t j : indices(drawn.size()))
      total[class_of(drawn[j], k)] += count[drawn[j]] * weight.of(drawn[j]);
    for (const std::size_t j : indices(drawn.size()))
      relative[j] /= static_cast<double>(total[class_of(drawn[j], k)]);
  }
  whole_weights(relative, unit_of_weights(relative), relative);
  std::vector<std::int64_t> balanced(count.size());
  for (const std::size_t j : indices(drawn.size()))
    balanced[drawn[j]] = static_cast<std::int64_t>(relative[j]);
  return balanced;
}

template <class NodeBins, class Target>
BinnedTrees grow_drawn(const DrawnRows& rows, std::span<const std::int64_t> weight,
                       const Bags& bags, std::int64_t number, const BinnedGrowth& growth,
                       const Target& target, std::span<const std::int32_t> count) {
  using Item = typename Target::Item;
  const auto key = [&](Draw draw) { return key_of_tree(bags.drawing.seed, number, draw); };
  const auto items = make_buffer<Item>(count.size() + 1),
             room = make_buffer<Item>(count.size() + 1);
  std::size_t n = 0;
  for (const std::size_t i : indices(count.size())) {
    const std::int64_t one = count[i] * (weight.empty() ? 1 : weight[i]);
    items[n] = target.item(i, one);
    n += one > 0 ? 1 : 0;
  }
  const std::span<Item> growing(items.get(), n);
  NodeTotals totals;
  target.total(growing, totals);
  totals.end_node();
  DrawnHistograms<Target, NodeBins> sums(
      rows, growing, totals,
      features_of_tree(growth.feature_order, bags.max_features_of_tree, key(Draw::features)),
      growth, target);
  TreeGrowth tree(rows.bins, MovedRows<Item>{growing, {}, room.get(), nullptr}, growth, totals,
                  sums);
  BinnedTrees grown{tree.grow(key(Draw::nodes)), {0}, {}};
  if (!Target::kSparse) grown.sums.sum.reserve(checked_size(totals.size(), target.most_sums()));
  for (const std::size_t v : indices(totals.size())) {
    grown.sums.begin.push_back(std::ssize(grown.sums.sum));
    target.write(totals.of(v), grown.sums);
  }
  return grown;
}

// Small items serve where weights are small, and give the same tree. balanced(count): weights of
// the rows of a tree whose classes have the same weight.
template <class Small, class Wide, class Balanced>
BinnedTrees grow_trees(const DrawnRows& rows, const WholeWeights& weight, const Bags& bags,
                       const BinnedGrowth& growth, const typename Small::Response& response,
                       bool may_be_small, const Balanced& balanced) {
  constexpr std::int64_t kMostDraws = 0xFFFFFFFF;
  const RowLimits limits{weight.unit, growth.min_rows};
  const Small small(response, limits);
  const Wide wide(response, limits);
  may_be_small &=
      weight.whole.values.empty() && !bags.is_balanced && bags.drawing.most_rows <= kMostDraws;
  std::vector<BinnedTrees> grown(static_cast<std::size_t>(bags.n_trees));
  parallel_for(bags.n_trees, growth.n_threads, [&](std::int64_t i) {
    const std::int64_t number = bags.first + i;
    const auto memory = make_buffer<std::int32_t>(rows.n_rows());
    const std::span<std::int32_t> count(memory.get(), static_cast<std::size_t>(rows.n_rows()));
    fill(count, 0);
    draw_rows(bags.drawing, number, count);
    const std::vector<std::int64_t> of_tree =
        bags.is_balanced ? balanced(count) : std::vector<std::int64_t>{};
    const std::span<const std::int64_t> whole =
        bags.is_balanced ? std::span(of_tree) : weight.whole.values;
    const auto grow_on = [&]<class Target>(const Target& target) {
      const auto grow = [&]<class NodeBins>(std::type_identity<NodeBins>) {
        return grow_drawn<NodeBins>(rows, whole, bags, number, growth, target, count);
      };
      return rows.is_sparse() ? grow(std::type_identity<SparseNodeBins<Target>>())
                              : grow(std::type_identity<DenseNodeBins<Target>>());
    };
    const auto is_small = [](std::int32_t one) { return one <= Small::Item::kMostWeight; };
    grown[static_cast<std::size_t>(i)] =
        may_be_small && all_of(std::span<const std::int32_t>(count), is_small) ? grow_on(small)
                                                                               : grow_on(wide);
  });
  return joined(std::move(grown));
}

// The numbers of a column in units of a power of two, so that no sum over a tree's rows overflows.
struct WholeNumbers {
  Integers whole;               // (n, q)
  std::vector<int> bits, unit;  // (q,)

  WholeNumbers(const Table<const double>& target, std::int64_t n)
      : whole(checked_size(static_cast<std::size_t>(target.n_rows),
                           static_cast<std::size_t>(target.width))) {
    const auto n_columns = static_cast<std::size_t>(target.width);
    std::vector<double> largest(n_columns);
    std::vector<std::int64_t> most(n_columns, 1);
    for (const std::size_t i : indices(target.n_rows, target.width))
      for (std::size_t k = 0; k < n_columns; ++k)
        largest[k] = std::max(largest[k], std::abs(target.row(i)[k]));
    std::vector<FixedPoint> fixed;
    for (const double one : largest) fixed.emplace_back(one, n);
    for (const std::size_t i : indices(target.n_rows, target.width))
      for (std::size_t k = 0; k < n_columns; ++k) {
        const std::int64_t one = fixed[k].whole(target.row(i)[k]);
        whole.values[i * n_columns + k] = one;
        most[k] = std::max(most[k], std::abs(one));
      }
    for (std::size_t k = 0; k < n_columns; ++k) {
      bits.push_back(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(most[k]))));
      unit.push_back(fixed[k].unit());
    }
  }
};

// Several columns as lanes, in memory that a response points to.
struct WholeLanes {
  Integers whole;
  std::vector<std::int32_t> lane;
  std::vector<double> factor;
  std::vector<std::uint8_t> both;
  std::vector<int> bits, exponent;
  OutputsResponse response{};

  WholeLanes(const Columns& columns, std::int64_t n_draws) {
    response.n_columns = static_cast<std::size_t>(columns.y.width);
    response.classes = !columns.n_classes.empty();
    response.logs = columns.criterion == Criterion::entropy;
    if (response.classes)
      count(columns);
    else
      measure(columns, n_draws);
    response.n_lanes = factor.size();
    response.unit = std::ranges::max(factor);
    if (!(response.unit > 0.0)) response.unit = 1.0;
    for (double& one : factor) one /= response.unit;
    response.whole = whole.values;
    response.lane = lane;
    response.factor = factor;
    response.both = both;
    response.bits = bits;
    response.exponent = exponent;
  }
  WholeLanes(const WholeLanes&) = delete;
  WholeLanes& operator=(const WholeLanes&) = delete;

 private:
  void add_lane(double of, bool is_both, int n_bits, int unit) {
    factor.push_back(std::ldexp(of, 2 * unit));
    both.push_back(is_both);
    bits.push_back(n_bits);
    exponent.push_back(unit);
  }

  void measure(const Columns& columns, std::int64_t n_draws) {
    WholeNumbers numbers(columns.y, n_draws);
    whole = std::move(numbers.whole);
    for (std::size_t k = 0; k < response.n_columns; ++k)
      add_lane(columns.factor[k], false, numbers.bits[k], numbers.unit[k]);
  }

  // Gini's index of two classes is twice the variance of the second.
  void count(const Columns& columns) {
    const std::size_t q = response.n_columns;
    std::vector<std::int32_t> first;
    for (std::size_t k = 0; k < q; ++k) {
      first.push_back(static_cast<std::int32_t>(factor.size()));
      const bool is_one = columns.n_classes[k] < 3;
      const double of = columns.factor[k] * (is_one && !response.logs ? 2.0 : 1.0);
      for (std::int32_t c = 0; c < (is_one ? 1 : columns.n_classes[k]); ++c)
        add_lane(of, is_one, 1, 0);
    }
    const auto n = static_cast<std::size_t>(columns.y.n_rows);
    whole = Integers(checked_size(n, q));
    if (factor.size() > q) lane.resize(whole.values.size());
    for (const std::size_t i : indices(n, q))
      for (std::size_t k = 0; k < q; ++k) {
        const double y = columns.y.row(i)[k];
        const bool is_one = columns.n_classes[k] < 3;
        whole.values[i * q + k] = is_one ? static_cast<std::int64_t>(y) : 1;
        if (!lane.empty()) lane[i * q + k] = first[k] + (is_one ? 0 : static_cast<std::int32_t>(y));
      }
  }
};

}  // namespace

namespace {

// Fractions of the largest weight that differ by less differ by rounding alone: fractions with
// denominators of 16 bits lie farther apart.
constexpr double kNothing = 1e-12;

// The denominator, at most kMostWhole, of the fraction that a number in (0, 1] is but for rounding,
// by its continued fraction; 0: there is none.
std::int64_t denominator_of(double number) {
  constexpr double kMost = kMostWhole;
  double rest = number, p = 1.0, q = 0.0, last_p = 0.0, last_q = 1.0;
  while (rest < kMost * kMost) {
    const double whole = std::floor(rest);
    const double next_p = whole * p + last_p, next_q = whole * q + last_q;
    last_p = p, last_q = q, p = next_p, q = next_q;
    if (q > kMost) return 0;
    if (p > 0.0 && std::abs(number - p / q) <= kNothing) return static_cast<std::int64_t>(q);
    rest = 1.0 / (rest - whole);
  }
  return 0;
}

}  // namespace

WeightUnit unit_of_weights(std::span<const double> weight) {
  const WeightsSeen seen(weight);
  std::int64_t n_units = 1;  // of the largest weight
  for (const auto part : chunks(weight))
    for (const double one : part) {
      const double fraction = one / seen.largest, units = fraction * static_cast<double>(n_units);
      const double nearest = std::nearbyint(units);
      if (nearest > 0.0 && std::abs(units - nearest) <= kNothing * static_cast<double>(n_units))
        continue;
      const std::int64_t more = denominator_of(fraction);
      if (more > 0) n_units = std::lcm(n_units, more);
      if (more == 0 || static_cast<double>(n_units) > kMostWhole) return {seen.largest, 0.0};
    }
  return {seen.largest, seen.largest / static_cast<double>(n_units)};
}

void whole_weights(std::span<const double> weight, const WeightUnit& of_all,
                   std::span<double> whole) {
  const double unit = of_all.common > 0.0 ? of_all.common : of_all.largest / kMostWhole;
  for (const std::size_t i : indices(weight.size()))
    whole[i] = std::max(std::nearbyint(weight[i] / unit), 1.0);
}

BinnedTrees joined(std::vector<BinnedTrees>&& parts) {
  BinnedTrees all;
  std::size_t n_sums = 0;
  for (const BinnedTrees& part : parts) n_sums += part.sums.sum.size();
  all.sums.sum.reserve(n_sums);
  for (BinnedTrees& part : parts) {
    append_shifted(part.root, static_cast<std::int64_t>(std::ssize(all.nodes.left)), all.root);
    part.sums.begin.resize(part.nodes.left.size());  // without its end
    append_shifted(part.sums.begin, static_cast<std::int64_t>(std::ssize(all.sums.sum)),
                   all.sums.begin);
    append(part.nodes, all.nodes);
    append(part.sums.lane, all.sums.lane);
    append(part.sums.sum, all.sums.sum);
    part = {};
  }
  finish_columns(all.nodes);
  all.sums.begin.push_back(std::ssize(all.sums.sum));
  return all;
}

void draw_rows(const Drawing& drawing, std::int64_t tree, std::span<std::int32_t> count) {
  if (!drawing.group.empty()) {
    std::vector<std::int32_t> of_group(static_cast<std::size_t>(drawing.n_groups));
    draw_rows({drawing.kind, drawing.n_draws, drawing.seed, {}}, tree, of_group);
    for (const std::size_t i : indices(count.size()))
      count[i] = of_group[static_cast<std::size_t>(drawing.group[i])];
    return;
  }
  Random random(key_of_tree(drawing.seed, tree, Draw::rows));
  if (drawing.kind == Sampling::all) fill(count, 1);
  if (drawing.kind == Sampling::some) draw_some(random, drawing.n_draws, count);
  if (drawing.kind == Sampling::repeated) draw_repeatedly(random, drawing.n_draws, count);
}

BinnedTrees grow_bags(const DrawnRows& rows, const Bags& bags, const BinnedGrowth& growth,
                      const Classes& response) {
  const WholeWeights weight(rows.weight, bags);
  const std::array n_classes{response.n_classes};
  const auto balanced = [&](std::span<const std::int32_t> count) {
    const auto class_of = [&](std::size_t i, std::size_t) {
      return static_cast<std::size_t>(response.y[i]);
    };
    return balanced_weights(count, weight, n_classes, class_of);
  };
  if (response.n_classes > 2) {
    const bool few = response.n_classes <= SmallClassItem::kMostClasses;
    return grow_trees<ClassTarget<SmallClassItem>, ClassTarget<WideClassItem>>(
        rows, weight, bags, growth, response, few, balanced);
  }
  const Integers whole(response.y.size());
  for (const std::size_t i : indices(response.y.size())) whole.values[i] = response.y[i];
  std::vector<double> logs;
  if (response.criterion == Criterion::entropy)
    logs = logs_up_to(bags.drawing.most_rows * weight.heaviest);
  return grow_trees<PairTarget<SmallPairItem>, PairTarget<WidePairItem>>(
      rows, weight, bags, growth, {true, false, logs, whole.values}, true, balanced);
}

BinnedTrees grow_bags(const DrawnRows& rows, const Bags& bags, const BinnedGrowth& growth,
                      const Numbers& response) {
  const WholeWeights weight(rows.weight, bags);
  const Table<const double> column{response.y.data(), std::ssize(response.y), 1};
  const WholeNumbers numbers(column, bags.drawing.most_rows * weight.heaviest);
  const bool is_poisson = response.criterion == Criterion::poisson;
  const PairResponse pairs{false,           is_poisson,     {}, numbers.whole.values,
                           numbers.bits[0], numbers.unit[0]};
  const auto balanced = [](std::span<const std::int32_t>) -> std::vector<std::int64_t> {
    throw std::invalid_argument("numbers have no classes to balance");
  };
  return grow_trees<PairTarget<DrawnNumberItem>, PairTarget<WidePairItem>>(
      rows, weight, bags, growth, pairs, true, balanced);
}

BinnedTrees grow_bags(const DrawnRows& rows, const Bags& bags, const BinnedGrowth& growth,
                      const Columns& response) {
  const WholeWeights weight(rows.weight, bags);
  const WholeLanes lanes(response, bags.drawing.most_rows * weight.heaviest);
  const auto balanced = [&](std::span<const std::int32_t> count) {
    const auto class_of = [&](std::size_t i, std::size_t k) {
      return static_cast<std::size_t>(response.y.row(i)[k]);
    };
    return balanced_weights(count, weight, response.n_classes, class_of);
  };
  return grow_trees<OutputsTarget, OutputsTarget>(rows, weight, bags, growth, lanes.response, false,
                                                  balanced);
}

}  // namespace certree
