// Growth of many trees from binned rows.
//
// The rows of a cell lie together as items of a few bytes, which know where the row's codes are.
// Whenever a cell has shrunk to an eighth, the codes of its rows are copied together, so that those
// of small cells lie in the cache. One tree is a task.

#include "grow/forest.hpp"

#include "grow/forest_search.hpp"

namespace certree {
namespace {

struct GrownTree {
  TreeColumns columns;
  NodeSums sums;
};

// One tree. Cells are grown depth first, so that one copy of codes for each size is enough.
template <class Target>
class ForestTree {
 public:
  using Item = typename Target::Item;
  using Sum = typename Target::Sum;

  struct Cell {
    std::int64_t begin, end;
    std::int32_t depth, node;
    std::uint64_t key;
    std::size_t copy;  // of the codes that the items mean
  };

  ForestTree(const ForestRows& rows, const ForestGrowth& growth, const Target& target,
             const ForestSampling& sampling, std::int64_t tree)
      : rows_(rows),
        growth_(growth),
        target_(target),
        key_(key_of_tree(sampling.seed, tree, Draw::cells)),
        search_(target, rows, growth, key_of_tree(sampling.seed, tree, Draw::features)),
        total_(target.n_lanes()) {}

  GrownTree grow(std::span<const std::int32_t> count) {
    take_items(count);
    copies_.push_back({rows_.codes, rows_.codes.n_rows, {}});
    written_.resize(1);
    GrownTree grown;
    if (n_items_ == 0) write(0);  // nobody visits an empty root
    const Rule rule{*this};
    grown.columns = Growth<Rule>::whole(rule, {0, n_items_, 0, 0, key_, 0}).columns();
    grown.sums = sums_by_node();
    return grown;
  }

 private:
  struct Rule {
    using Cell = ForestTree::Cell;
    ForestTree& tree;
    bool split(const Cell& cell, Split& split, Cell& left, Cell& right) const {
      return tree.split(cell, split, left, right);
    }
  };
  struct Copy {
    Table<const std::uint8_t> codes;
    std::int64_t most_rows;
    Buffer<std::uint8_t> memory;
  };
  struct Written {
    std::size_t begin = 0, end = 0;
  };
  // A copy pays where it shrinks to an eighth what is more than the nearest cache holds.
  static constexpr std::int64_t kShrinks = 8, kNear = 1 << 14;

  void take_items(std::span<const std::int32_t> count) {
    items_ = make_buffer<Item>(count.size() + 1);
    right_ = make_buffer<Item>(count.size() + 1);
    const double* const weight = rows_.weight.empty() ? nullptr : rows_.weight.data();
    for (const std::size_t i : turns(count.size())) {
      const std::int64_t one = count[i] * (weight ? static_cast<std::int64_t>(weight[i]) : 1);
      items_[static_cast<std::size_t>(n_items_)] = target_.item(i, one);
      n_items_ += one > 0 ? 1 : 0;
    }
  }
  std::span<Item> items_of(const Cell& cell) {
    return {items_.get() + cell.begin, static_cast<std::size_t>(cell.end - cell.begin)};
  }

  bool split(const Cell& given, Split& split, Cell& left, Cell& right) {
    Cell cell = given;
    const auto items = items_of(cell);
    add_up(items);
    write(cell.node);
    if (cell.depth == 0) all_ = target_.weight(total_.data());
    if (cell.depth >= growth_.max_depth || std::ssize(items) < growth_.min_split ||
        std::ssize(items) / 2 < growth_.min_rows || target_.is_pure(items, total_.data()))
      return false;
    shrink(cell);
    ForestCut& cut = search_.best(items, copies_[cell.copy].codes, total_.data(), cell.key);
    if (!cut.is_made() || !is_worth_it(cut)) return false;
    divide(cell, cut, split, left, right);
    return true;
  }

  bool is_worth_it(const ForestCut& cut) const {
    return growth_.min_decrease == 0.0 ||
           search_.decrease(cut) * target_.unit_of_decrease() >= growth_.min_decrease * all_;
  }

  void add_up(std::span<const Item> items) {
    std::ranges::fill(total_, Sum{});
    for (const auto part : stretches(items))
      for (const Item& item : part) target_.add(item, total_.data());
  }
  void write(std::int32_t node) {
    const std::size_t begin = sums_.sum.size();
    target_.write(total_.data(), sums_);
    written_[static_cast<std::size_t>(node)] = {begin, sums_.sum.size()};
  }

  void shrink(Cell& cell) {
    const Table<const std::uint8_t> from = copies_[cell.copy].codes;
    const std::int64_t n = cell.end - cell.begin;
    if (n * kShrinks > from.n_rows || from.n_rows * from.width <= kNear) return;
    if (++cell.copy == copies_.size()) {
      const std::int64_t most = copies_.back().most_rows / kShrinks;
      copies_.push_back({{}, most, make_buffer<std::uint8_t>(most, from.width)});
    }
    Copy& copy = copies_[cell.copy];
    copy.codes = {copy.memory.get(), n, from.width};
    std::uint8_t* to = copy.memory.get();
    std::uint32_t row = 0;
    for (const auto part : stretches(items_of(cell)))
      for (Item& item : part) {
        spend(from.width / 16);
        to = std::copy_n(from.row(item.row), from.width, to);
        item.row = row++;
      }
  }

  void divide(const Cell& cell, ForestCut& cut, Split& split, Cell& left, Cell& right) {
    std::array<std::uint8_t, 256> goes_left;
    search_.settle(cut, goes_left);
    const std::int64_t middle =
        send(items_of(cell), copies_[cell.copy].codes, cut.feature, goes_left) + cell.begin;
    split.feature = cut.feature;
    split.missing_left =
        cut.has_missing ? cut.missing_left : 2 * (middle - cell.begin) >= cell.end - cell.begin;
    if (cut.is_set)
      take_levels(cell, cut, split);
    else
      split.threshold = cut.threshold.value;
    const auto node = static_cast<std::int32_t>(written_.size());
    written_.resize(written_.size() + 2);
    left = {cell.begin, middle, cell.depth + 1, node, key_of(cell.key, 0), cell.copy};
    right = {middle, cell.end, cell.depth + 1, node + 1, key_of(cell.key, 1), cell.copy};
  }

  // Levels that the cell has not seen go where missing values go.
  void take_levels(const Cell& cell, const ForestCut& cut, Split& split) {
    std::array<std::uint8_t, 256> goes_left;
    goes_left.fill(split.missing_left);
    const auto& codes = copies_[cell.copy].codes;
    for (const auto part : stretches(items_of(cell)))
      for (const Item& item : part) {
        const std::uint8_t code = codes.row(item.row)[cut.feature];
        goes_left[code] = cut.levels_left[code];
      }
    split.categories = levels_against_missing(rows_.bins, cut.feature, goes_left);
  }

  // Items that go left move to the front; both sides keep their order. Returns their number.
  std::int64_t send(std::span<Item> items, const Table<const std::uint8_t>& codes,
                    std::int32_t feature, const std::array<std::uint8_t, 256>& goes_left) {
    const std::uint8_t* const code = codes.data + feature;
    Item* to_left = items.data();
    Item* to_right = right_.get();
    for (const auto part : stretches(items))
      for (const Item item : part) {
        const std::size_t left = goes_left[code[item.row * codes.width]];
        *to_left = *to_right = item;  // no branch: it would be guessed wrong too often
        to_left += left;
        to_right += 1 - left;
      }
    std::copy(right_.get(), to_right, to_left);
    return to_left - items.data();
  }

  // Nodes were visited depth first.
  NodeSums sums_by_node() const {
    NodeSums ordered;
    ordered.begin.reserve(written_.size());
    ordered.lane.reserve(sums_.lane.size());
    ordered.sum.reserve(sums_.sum.size());
    for (const auto part : stretches(std::span<const Written>(written_)))
      for (const Written& one : part) {
        ordered.begin.push_back(std::ssize(ordered.sum));
        for (std::size_t i = one.begin; i < one.end; ++i) {
          ordered.lane.push_back(sums_.lane[i]);
          ordered.sum.push_back(sums_.sum[i]);
        }
      }
    return ordered;
  }

  const ForestRows& rows_;
  const ForestGrowth& growth_;
  const Target& target_;
  std::uint64_t key_;
  ForestSearch<Target> search_;
  std::vector<Sum> total_;  // of the cell that is split
  double all_ = 0.0;        // weight of the tree's rows
  std::int64_t n_items_ = 0;
  Buffer<Item> items_, right_;
  std::vector<Copy> copies_;
  NodeSums sums_;
  std::vector<Written> written_;  // by node, where its sums are
};

// -- many trees

template <class T>
void append(const std::vector<T>& from, std::vector<T>& to) {
  for (const auto part : stretches(std::span(from))) to.insert(to.end(), part.begin(), part.end());
}

// Adds so much to what is appended.
template <class T>
void append_moved(const std::vector<T>& from, T shift, std::vector<T>& to) {
  for (const auto part : stretches(std::span(from)))
    for (const T one : part) to.push_back(one + shift);
}

void append(GrownTree&& tree, ForestColumns& forest) {
  TreeColumns &from = tree.columns, &to = forest.nodes;
  const std::size_t m = from.left.size(), before = to.left.size();
  if (before + m > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw std::invalid_argument("the trees would need more than 2147483647 nodes");
  forest.root.push_back(static_cast<std::int64_t>(before));
  append(from.feature, to.feature);
  append(from.threshold, to.threshold);
  append(from.missing_left, to.missing_left);
  for (const auto part : stretches(std::span(from.left)))
    for (const std::int32_t child : part)
      to.left.push_back(child == kLeaf ? kLeaf : child + static_cast<std::int32_t>(before));
  if (from.category_start.empty()) from.category_start.assign(m + 1, 0);
  from.category_start.pop_back();
  append_moved(from.category_start, static_cast<std::int64_t>(std::ssize(to.categories)),
               to.category_start);
  append(from.categories, to.categories);
  append_moved(tree.sums.begin, static_cast<std::int64_t>(std::ssize(forest.sums.sum)),
               forest.sums.begin);
  append(tree.sums.lane, forest.sums.lane);
  append(tree.sums.sum, forest.sums.sum);
  tree = {};
}

// Small items serve where weights are small, and give the same tree.
template <class Small, class Wide>
ForestColumns grow_trees(const ForestRows& rows, const ForestSampling& sampling,
                         const ForestGrowth& growth, const typename Small::Response& response,
                         bool may_be_small) {
  constexpr std::int64_t kMostDraws = 0xFFFFFFFF;
  const Small small(response);
  const Wide wide(response);
  may_be_small &= rows.weight.empty() && sampling.n_draws <= kMostDraws;
  std::vector<GrownTree> trees(static_cast<std::size_t>(growth.n_trees));
  parallel_for(growth.n_trees, growth.n_threads, [&](std::int64_t i) {
    const std::int64_t tree = growth.first + i;
    std::vector<std::int32_t> count(static_cast<std::size_t>(rows.codes.n_rows));
    draw_rows(sampling, tree, count);
    const auto grow_on = [&](const auto& target) {
      using Target = std::remove_cvref_t<decltype(target)>;
      return ForestTree<Target>(rows, growth, target, sampling, tree).grow(count);
    };
    const auto is_small = [](std::int32_t one) { return one <= Small::Item::kMostWeight; };
    trees[static_cast<std::size_t>(i)] =
        may_be_small && all_of(std::span<const std::int32_t>(count), is_small) ? grow_on(small)
                                                                               : grow_on(wide);
  });
  ForestColumns forest;
  for (GrownTree& tree : trees) append(std::move(tree), forest);
  forest.nodes.category_start.push_back(std::ssize(forest.nodes.categories));
  forest.sums.begin.push_back(std::ssize(forest.sums.sum));
  return forest;
}

// The numbers in units of a power of two, so that no sum over a tree's rows overflows.
std::vector<std::int64_t> whole_numbers(const ForestRows& rows, const ForestSampling& sampling,
                                        std::span<const double> target, PairResponse& response) {
  double largest = 0.0, heaviest = 1.0;
  for (const auto part : stretches(target))
    for (const double one : part) largest = std::max(largest, std::abs(one));
  for (const auto part : stretches(rows.weight))
    for (const double one : part) heaviest = std::max(heaviest, one);
  const FixedPoint fixed(largest, sampling.n_draws * static_cast<std::int64_t>(heaviest));
  std::vector<std::int64_t> whole;
  whole.reserve(target.size());
  std::int64_t most = 1;
  for (const auto part : stretches(target))
    for (const double one : part) {
      whole.push_back(fixed.whole(one));
      most = std::max(most, std::abs(whole.back()));
    }
  response.bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(most)));
  response.unit = fixed.unit();
  return whole;
}

}  // namespace

void draw_rows(const ForestSampling& sampling, std::int64_t tree, std::span<std::int32_t> count) {
  Random random(key_of_tree(sampling.seed, tree, Draw::rows));
  if (sampling.kind == Sampling::all) fill(count, 1);
  if (sampling.kind == Sampling::some) draw_some(random, sampling.n_draws, count);
  if (sampling.kind == Sampling::repeated) draw_repeatedly(random, sampling.n_draws, count);
}

ForestColumns grow_forest(const ForestRows& rows, const ForestSampling& sampling,
                          const ForestGrowth& growth, const ForestClasses& response) {
  if (response.n_classes > 2 || response.criterion != Criterion::gini) {
    const bool few = response.n_classes <= SmallClassItem::kMostClasses;
    return grow_trees<ClassTarget<SmallClassItem>, ClassTarget<WideClassItem>>(
        rows, sampling, growth, response, few);
  }
  const std::vector<std::int64_t> whole(response.y.begin(), response.y.end());
  return grow_trees<PairTarget<SmallPairItem>, PairTarget<WidePairItem>>(rows, sampling, growth,
                                                                         {true, whole}, true);
}

ForestColumns grow_forest(const ForestRows& rows, const ForestSampling& sampling,
                          const ForestGrowth& growth, std::span<const double> target) {
  PairResponse response{};
  const std::vector<std::int64_t> whole = whole_numbers(rows, sampling, target, response);
  response.whole = whole;
  return grow_trees<PairTarget<DrawnNumberItem>, PairTarget<WidePairItem>>(rows, sampling, growth,
                                                                           response, true);
}

}  // namespace certree
