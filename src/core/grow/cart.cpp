// CART: every node is split where the response becomes purest.
//
// Every feature of numbers keeps the rows of a node in the order of its values, so that one sweep
// along them compares all splits; a split of the node partitions these lists and keeps their order.
// Small nodes are grown in copies of their lists with rows of their own numbering, which fit into
// the cache. No split is missed and no value is rounded.

#include "grow/cart_search.hpp"
#include "grow/cart_send.hpp"
#include "grow/criteria.hpp"

namespace certree {
namespace {

// Makes what searches rows for splits, as their criterion says.
template <class Rows>
using MakeSearch = std::unique_ptr<AnySearch> (*)(const Rows&, const Decisions<Rows>&,
                                                  const Greedy&, std::vector<std::int64_t>&, int);
template <class Sweep, class Rows>
std::unique_ptr<AnySearch> search_by(const Rows& rows, const Decisions<Rows>& decide,
                                     const Greedy& greedy, std::vector<std::int64_t>& precedence,
                                     int n_threads) {
  return std::make_unique<Search<Rows, Sweep>>(rows, decide, greedy, precedence, n_threads);
}

template <class Rows>
class CartRule {
 public:
  using Node = CartNode;
  using SplitInfo = certree::SplitInfo;

  CartRule(const Rows& rows, const Stopping& stopping, const Greedy& greedy,
           std::vector<std::int64_t>& precedence, int n_threads, MakeSearch<Rows> make_search)
      : n_threads_(n_threads),
        decide_(rows, stopping, greedy),
        search_(make_search(rows, decide_, greedy, precedence, n_threads)),
        sender_(rows) {}

  Node root() const { return decide_.root(); }

  bool split(const Node& node, Split& split, Node& left, Node& right) const {
    const SplitInfo split_info = search(node);
    if (!split_info.is_made()) return false;
    divide(node, split_info, split, left, right);
    return true;
  }

  SplitInfo search(const Node& node) const { return search_->best(node); }

  void divide(const Node& node, const SplitInfo& split_info, Split& split, Node& left,
              Node& right) const {
    const std::int64_t middle = node.begin + sender_.mark(node, split_info, split);
    sender_.move_members(node, middle);
    left = decide_.child(node, split_info, 0, node.begin, middle);
    right = decide_.child(node, split_info, 1, middle, node.end);
    if (!left.is_leaf || !right.is_leaf) sender_.move_others(node, middle, n_threads_);
  }

 private:
  int n_threads_;
  Decisions<Rows> decide_;
  std::unique_ptr<AnySearch> search_;
  Sender<Rows> sender_;
};

// The rows of a node under numbers of their own, so that what belongs to them lies close together.
template <class Rows>
class Part {
 public:
  // number: (n,) scratch, of which disjoint parts use disjoint entries.
  Part(const Rows& whole, const GrowingNode& node, std::uint32_t* number)
      : m_(node.end - node.begin),
        original_(make_buffer<std::uint32_t>(m_)),
        y_(make_buffer<typename Rows::Y>(m_, whole.y.n_rows)),
        weight_(make_buffer<double>(whole.weight ? m_ : 0)),
        lists_(make_buffer<RankedRow>(m_, whole.lists.n_rows)),
        codes_(make_buffer<std::uint32_t>(m_, whole.codes.n_rows)),
        rows_{whole.X,
              whole.features,
              whole.few,
              original_.get(),
              {y_.get(), whole.y.n_rows, m_},
              whole.weight ? weight_.get() : nullptr,
              whole.weight_unit,
              whole.counts_rows,
              whole.n_classes,
              {lists_.get(), whole.lists.n_rows, m_},
              {codes_.get(), whole.codes.n_rows, m_}} {
    const auto members = whole.members(node);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::uint32_t row = members[i].row;
      number[row] = static_cast<std::uint32_t>(i);
      original_[i] = row;
      if (whole.weight) weight_[i] = whole.weight[row];
    }
    for (const std::size_t k : indices(whole.y.n_rows, m_))
      std::ranges::transform(members, y_.get() + static_cast<std::int64_t>(k) * m_,
                             [&](const RankedRow& e) { return whole.y.row(k)[e.row]; });
    for (const std::size_t l : indices(whole.lists.n_rows, m_)) {
      RankedRow* to = rows_.lists.row(l);
      for (const RankedRow& e : Rows::part(whole.lists.row(l), node))
        *to++ = {e.rank, number[e.row]};
    }
    for (const std::size_t s : indices(whole.codes.n_rows, m_)) {
      std::uint32_t* to = rows_.codes.row(s);
      for (const RankedRow& e : members) *to++ = whole.codes.row(s)[e.row];
    }
  }

  const Rows& rows() const { return rows_; }

 private:
  std::int64_t m_;
  Buffer<std::uint32_t> original_;
  Buffer<typename Rows::Y> y_;
  Buffer<double> weight_;
  Buffer<RankedRow> lists_;
  Buffer<std::uint32_t> codes_;
  Rows rows_;
};

// search_part: what searches parts, whose nodes are smaller.
template <class Rows>
TreeColumns grow_presorted(const Rows& rows, const Stopping& stopping, const Greedy& greedy,
                           int n_threads, MakeSearch<Rows> search, MakeSearch<Rows> search_part) {
  using Rule = CartRule<Rows>;
  std::vector<std::int64_t> precedence(greedy.feature_order.features.begin(),
                                       greedy.feature_order.features.end());
  const Rule rule(rows, stopping, greedy, precedence, n_threads, search);
  if (greedy.max_leaves > 0) return grow_best_first(rule, rule.root(), greedy.max_leaves);
  const auto number = make_buffer<std::uint32_t>(rows.size());
  const auto grow_part = [&](const CartNode& node) {
    if (node.is_leaf) return Growth<Rule>::whole(rule, node);
    const Part<Rows> part(rows, node, number.get());
    const Rule part_rule(part.rows(), stopping, greedy, precedence, 1, search_part);
    CartNode part_node = node;
    part_node.begin = 0;
    part_node.end = part.rows().size();
    return Growth<Rule>::whole(part_rule, part_node);
  };
  return Growth<Rule>::run(rule, rule.root(), n_threads, grow_part);
}

// Weights in a unit of their own, a power of two, so that trees do not depend on that of the
// caller: neither by what is rounded in sums of logarithms, which takes no weight below 1, nor by
// squares that overflow. Where the smallest weight lies in [1, 2), nothing changes.
class OwnUnit {
 public:
  explicit OwnUnit(std::span<const double> weight) : weight_(make_buffer<double>(weight.size())) {
    if (weight.empty()) return;
    const auto [least, most] = std::ranges::minmax(weight);
    if (least > 0.0 && most < kInfinity)
      exponent_ = std::max(std::ilogb(least), std::ilogb(most) - kRange);
    for (const std::size_t i : indices(weight.size()))
      weight_[i] = std::max(std::ldexp(weight[i], -exponent_), std::ldexp(1.0, -kRange));
    is_plain_ = false;
  }
  const double* weight() const { return is_plain_ ? nullptr : weight_.get(); }
  int exponent() const { return exponent_; }

 private:
  static constexpr int kRange = 400;  // squares of sums of weights below 2^400 are finite

  Buffer<double> weight_;
  int exponent_ = 0;
  bool is_plain_ = true;
};

// Whether sweeps count rows beside their weights: where leaves need several rows. Without weights
// the weight of a child is its number of rows. Sets the least weight of a leaf in the unit of
// weights.
inline bool counts_rows(std::span<const double> weight, int unit, Greedy& greedy) {
  if (weight.empty())
    greedy.min_leaf_weight = std::max(greedy.min_leaf_weight, greedy.min_leaf_rows);
  greedy.min_leaf_weight = std::ldexp(greedy.min_leaf_weight, -unit);
  return !weight.empty() && greedy.min_leaf_rows > 1.0;
}

// The features of numbers that nodes count by value. Not where weights or numbers are summed, whose
// order shows in the last bits, or where nodes compare few features.
template <class Sweep, class Real, class Y>
FewValues counted_features(const Table<const Real>& X, Table<const Y> y, std::int32_t n_classes,
                           const double* weight, const Greedy& greedy, int n_threads) {
  constexpr std::int64_t kMostRows = std::int64_t{1} << 26;  // their squares are exact
  if (std::is_same_v<Y, double> || weight || X.n_rows > kMostRows || greedy.random_splits ||
      greedy.max_features < X.width)
    return {};
  return {X, greedy.category, Sweep(y, weight, false, n_classes).width(), n_threads};
}

template <class Sweep, class Real, class Y>
TreeColumns grow_with(const Table<const Real>& X, const Ranked& ranked, Table<const Y> y,
                      std::int32_t n_classes, const Stopping& stopping, Greedy greedy,
                      int n_threads) {
  const std::int64_t n = X.n_rows;
  const OwnUnit unit(stopping.weight);
  greedy.min_gain = std::ldexp(greedy.min_gain, -unit.exponent());
  const bool are_counted = counts_rows(stopping.weight, unit.exponent(), greedy);
  const FewValues few = counted_features<Sweep>(X, y, n_classes, unit.weight(), greedy, n_threads);
  Features features(greedy.feature_order, greedy.category, few);
  const auto code_buffer = make_buffer<std::uint32_t>(n, features.n_sets());
  const auto list_buffer = make_buffer<RankedRow>(n, features.n_lists());
  const Table<std::uint32_t> codes{code_buffer.get(), features.n_sets(), n};
  const Table<RankedRow> lists{list_buffer.get(), features.n_lists(), n};
  encode_all(X, features, n_threads, codes);
  if (ranked.place.empty())
    rank_numbers(X, features, n_threads, lists);
  else
    pick_numbers(ranked, features, n_threads, lists);
  if (features.has_others())
    for (const std::size_t i : indices(n))
      lists.row(features.n_numbers())[i] = {0, static_cast<std::uint32_t>(i)};
  const CartRows<Y> rows{Values(X),       &features,   &few,      nullptr, y,    unit.weight(),
                         unit.exponent(), are_counted, n_classes, lists,   codes};
  return grow_presorted<CartRows<Y>>(rows, stopping, greedy, n_threads, search_by<Sweep>,
                                     search_by<typename OfParts<Sweep>::type>);
}

}  // namespace

template <class Real>
void rank_rows(Table<const Real> X, std::span<const std::uint8_t> category, int n_threads,
               Table<RankedRow> order) {
  const FeatureOrder as_they_stand({}, static_cast<std::size_t>(X.width));
  rank_numbers(X, Features(as_they_stand, category), n_threads, order);
}

template void rank_rows(Table<const float>, std::span<const std::uint8_t>, int, Table<RankedRow>);
template void rank_rows(Table<const double>, std::span<const std::uint8_t>, int, Table<RankedRow>);

template <class Real>
TreeColumns grow_cart(Table<const Real> X, const Ranked& ranked, const Response& response,
                      const Stopping& stopping, const Greedy& greedy, int n_threads) {
  const auto with = [&]<class Sweep, class Y>(std::type_identity<Sweep>, Table<const Y> y) {
    return grow_with<Sweep>(X, ranked, y, response.n_classes, stopping, greedy, n_threads);
  };
  const Table<const std::int32_t> y = response.y;
  const bool is_counted =
      stopping.weight.empty() && static_cast<double>(X.n_rows / kParts) <= Information::kMost;
  if (response.n_responses() > 1) {
    const auto summed = [&]<class One>(std::type_identity<One>, auto responses) {
      return with(std::type_identity<SummedSweep<One>>(), responses);
    };
    if (response.criterion == Criterion::squared)
      return summed(std::type_identity<SquaredSweep<double>>(), response.target);
    if (response.criterion == Criterion::gini) return summed(std::type_identity<GiniSweep>(), y);
    if (is_counted && static_cast<double>(X.n_rows) <= Information::kMost)
      return summed(std::type_identity<CountedEntropySweep<TabulatedTerms>>(), y);
    return summed(std::type_identity<EntropySweep>(), y);
  }
  const bool binary = y.data && response.n_classes <= 2;
  const auto bits = make_buffer<std::uint8_t>(binary ? X.n_rows : 0);
  if (binary)
    std::transform(y.data, y.data + X.n_rows, bits.get(),
                   [](std::int32_t k) { return static_cast<std::uint8_t>(k); });
  const Table<const std::uint8_t> of_two{bits.get(), 1, X.n_rows};
  const auto by_counted_entropy = [&]<class Part>(std::type_identity<Part>) {
    return binary ? with(std::type_identity<BinaryEntropySweep<Part>>(), of_two)
                  : with(std::type_identity<CountedEntropySweep<Part>>(), y);
  };
  switch (response.criterion) {
    case Criterion::squared:
      return with(std::type_identity<SquaredSweep<double>>(), response.target);
    case Criterion::absolute:
      return with(std::type_identity<AbsoluteSweep>(), response.target);
    case Criterion::poisson:
      return with(std::type_identity<PoissonSweep>(), response.target);
    case Criterion::entropy:
      if (!is_counted) return with(std::type_identity<EntropySweep>(), y);
      if (static_cast<double>(X.n_rows) > Information::kMost)
        return by_counted_entropy(std::type_identity<PartlyTabulatedTerms>());
      return by_counted_entropy(std::type_identity<TabulatedTerms>());
    case Criterion::misclassification:
      return with(std::type_identity<MisclassificationSweep>(), y);
    default:
      if (binary) return with(std::type_identity<SquaredSweep<std::uint8_t>>(), of_two);
      return with(std::type_identity<GiniSweep>(), y);
  }
}

template TreeColumns grow_cart(Table<const float>, const Ranked&, const Response&, const Stopping&,
                               const Greedy&, int);
template TreeColumns grow_cart(Table<const double>, const Ranked&, const Response&, const Stopping&,
                               const Greedy&, int);

}  // namespace certree
