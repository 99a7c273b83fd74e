// Greedy cells (CART): every cell is cut where the response becomes purest.
//
// Every feature keeps the rows of a cell in the order of its values, so that one sweep along them
// sees all cuts; a cut of the cell splits these lists and keeps their order. Small cells are grown
// in copies of their lists with rows of their own numbering, which fit into the cache. No cut is
// missed and no value is rounded.
//
// Missing values stand at the end of a list. A sweep is made with them on the right and, if there
// are any, one with them on the left.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "buffer.hpp"
#include "core.hpp"

namespace certree {
namespace {

constexpr std::uint32_t kMissing = 0xFFFFFFFFu;

// A row in a feature's list; equal values have equal ranks.
struct Entry {
  std::uint32_t rank;
  std::uint32_t row;
};

// -- criteria: what a sweep keeps of the rows left and right of the cut
// -------------------------------
//
// Each has: the type of a response; start(entries), which puts all rows right; take(row), which
// moves one left; value(), to be maximised, which falls short of the decrease in impurity by
// none().

// Squared loss, and Gini for two classes, which is squared loss on 0 and 1.
template <class Y>
struct SquaredSweep {
  const Y* y;
  const double* weight;
  double w = 0.0, s = 0.0, w_left = 0.0, s_left = 0.0;

  SquaredSweep(const Y* y_, const double* weight_, std::int32_t) : y(y_), weight(weight_) {}

  void start(const Entry* first, const Entry* last) {
    w = s = 0.0;
    for (const Entry* e = first; e != last; ++e) {
      const double one = weight ? weight[e->row] : 1.0;
      w += one;
      s += one * static_cast<double>(y[e->row]);
    }
    restart();
  }
  void restart() { w_left = s_left = 0.0; }
  void take(std::uint32_t row) {
    const double one = weight ? weight[row] : 1.0;
    w_left += one;
    s_left += one * static_cast<double>(y[row]);
  }
  double value() const {
    const double s_right = s - s_left;
    return s_left * s_left / w_left + s_right * s_right / (w - w_left);
  }
  double none() const { return s * s / w; }
};

// Any number of classes: counts on both sides.
template <class Derived>
struct ClassSweep {
  const std::int32_t* y;
  const double* weight;
  std::vector<double> all, left, right;
  double w = 0.0, w_left = 0.0;

  ClassSweep(const std::int32_t* y_, const double* weight_, std::int32_t n_classes)
      : y(y_),
        weight(weight_),
        all(static_cast<std::size_t>(n_classes)),
        left(all.size()),
        right(all.size()) {}

  void start(const Entry* first, const Entry* last) {
    std::fill(all.begin(), all.end(), 0.0);
    w = 0.0;
    for (const Entry* e = first; e != last; ++e) {
      const double one = weight ? weight[e->row] : 1.0;
      all[static_cast<std::size_t>(y[e->row])] += one;
      w += one;
    }
    restart();
  }
  void restart() {
    std::fill(left.begin(), left.end(), 0.0);
    right = all;
    w_left = 0.0;
    static_cast<Derived*>(this)->reset();
  }
  void take(std::uint32_t row) {
    const double one = weight ? weight[row] : 1.0;
    const auto k = static_cast<std::size_t>(y[row]);
    static_cast<Derived*>(this)->move(left[k], right[k], one);
    left[k] += one;
    right[k] -= one;
    w_left += one;
  }
};

struct GiniSweep : ClassSweep<GiniSweep> {
  double squares_left = 0.0, squares_right = 0.0, squares = 0.0;
  using ClassSweep::ClassSweep;
  void reset() {
    squares = std::inner_product(all.begin(), all.end(), all.begin(), 0.0);
    squares_left = 0.0;
    squares_right = squares;
  }
  void move(double from_left, double from_right, double one) {
    squares_left += one * (2.0 * from_left + one);
    squares_right -= one * (2.0 * from_right - one);
  }
  double value() const { return squares_left / w_left + squares_right / (w - w_left); }
  double none() const { return squares / w; }
};

struct EntropySweep : ClassSweep<EntropySweep> {
  using ClassSweep::ClassSweep;
  // Sums are whole multiples of 1 / scale, so that they do not depend on the order of the rows and
  // cuts that are equally good are seen to be.
  std::int64_t sum_left = 0, sum_right = 0, sum = 0;
  double scale = 1.0;

  // n log n, looked up where n counts rows: a sweep takes four of them per row.
  std::int64_t part(double n) const {
    const double value = weight ? n_log_n(n) : table()[static_cast<std::size_t>(n)];
    return static_cast<std::int64_t>(value * scale);
  }
  static double n_log_n(double n) { return n > 0.0 ? n * std::log(n) : 0.0; }
  static std::vector<double>& table() {
    thread_local std::vector<double> values{0.0};
    return values;
  }
  void reset() {
    if (!weight)
      while (table().size() <= static_cast<std::size_t>(w))
        table().push_back(n_log_n(static_cast<double>(table().size())));
    // Weights below 1 make n log n negative, but not below -1 / e for each class.
    const double largest = n_log_n(w) + static_cast<double>(all.size()) + 1.0;
    scale = std::ldexp(1.0, 60 - std::ilogb(largest));
    sum = 0;
    for (const double n : all) sum += part(n);
    sum_left = 0;
    sum_right = sum;
  }
  void move(double from_left, double from_right, double one) {
    sum_left += part(from_left + one) - part(from_left);
    sum_right += part(from_right - one) - part(from_right);
  }
  double value() const {
    const std::int64_t total = sum_left - part(w_left) + sum_right - part(w - w_left);
    return static_cast<double>(total) / scale;
  }
  double none() const { return static_cast<double>(sum - part(w)) / scale; }
};

struct MisclassificationSweep : ClassSweep<MisclassificationSweep> {
  using ClassSweep::ClassSweep;
  void reset() {}
  void move(double, double, double) {}
  double value() const {
    return *std::max_element(left.begin(), left.end()) +
           *std::max_element(right.begin(), right.end());
  }
  double none() const { return *std::max_element(all.begin(), all.end()); }
};

// -- lists in the order of values
// --------------------------------------------------------------------

// A number whose order as an unsigned integer is that of the values; missing ones come last.
template <class Real>
auto ordered_bits(Real x) {
  using Bits = std::conditional_t<sizeof(Real) == 8, std::uint64_t, std::uint32_t>;
  constexpr Bits sign = Bits{1} << (8 * sizeof(Real) - 1);
  if (std::isnan(x)) return ~Bits{0};
  const Bits bits = std::bit_cast<Bits>(x == Real{0} ? Real{0} : x);  // -0.0 equals 0.0
  return static_cast<Bits>(bits & sign ? ~bits : bits | sign);
}

// Sorts the rows of one feature into `list`, by radix: eleven bits at a time, passes in which all
// rows agree left out. Stable, so equal values stand in the order of the rows.
template <class Real>
void sort_feature(const Matrix<Real>& X, std::int64_t j, Entry* list) {
  using Bits = decltype(ordered_bits(Real{}));
  struct Key {
    Bits bits;
    std::uint32_t row;
  };
  constexpr int kDigit = 11;
  constexpr std::size_t kSize = std::size_t{1} << kDigit;
  constexpr int kPasses = (8 * static_cast<int>(sizeof(Real)) + kDigit - 1) / kDigit;
  const std::int64_t n = X.n_rows;
  auto keys = make_buffer<Key>(n), others = make_buffer<Key>(n);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t i = 0; i < n; ++i)
    keys[at(i)] = {ordered_bits(X.row(i)[j]), static_cast<std::uint32_t>(i)};
  if (n < 2048) {
    std::sort(keys.get(), keys.get() + n, [](const Key& a, const Key& b) {
      return a.bits < b.bits || (a.bits == b.bits && a.row < b.row);
    });
  } else {
    std::vector<std::uint32_t> starts(kSize * kPasses, 0);
    for (std::int64_t i = 0; i < n; ++i)
      for (int pass = 0; pass < kPasses; ++pass)
        ++starts[static_cast<std::size_t>(pass) * kSize +
                 ((keys[at(i)].bits >> (pass * kDigit)) & (kSize - 1))];
    for (int pass = 0; pass < kPasses; ++pass) {
      std::uint32_t* start = starts.data() + static_cast<std::size_t>(pass) * kSize;
      if (std::any_of(start, start + kSize, [&](std::uint32_t c) { return c == n; })) continue;
      std::exclusive_scan(start, start + kSize, start, std::uint32_t{0});
      for (std::int64_t i = 0; i < n; ++i) {
        const Key key = keys[at(i)];
        others[start[(key.bits >> (pass * kDigit)) & (kSize - 1)]++] = key;
      }
      std::swap(keys, others);
    }
  }
  std::uint32_t rank = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (i > 0 && keys[at(i)].bits != keys[at(i - 1)].bits) ++rank;
    list[i] = {keys[at(i)].bits == ~Bits{0} ? kMissing : rank, keys[at(i)].row};
  }
}

// -- growing
// -----------------------------------------------------------------------------------------

struct Cut {
  double value = -HUGE_VAL;
  std::int64_t n_left = 0;  // rows with a value that go left
  std::int64_t feature = -1;
  bool missing_left = false;
};

// The rows of a grower: all of them, or those of a part under numbers of its own.
template <class Real, class Y>
struct CartRows {
  Matrix<Real> X;
  const std::uint32_t* original;  // (n,) row of X, null if it is the same
  std::int64_t n;
  const Y* y;            // (n,)
  const double* weight;  // (n,) or null
  std::int32_t n_classes;
  Entry* lists;  // (p, n)

  Entry* list(std::int64_t j) const { return lists + j * n; }
  double x(const Entry& e, std::int64_t j) const {
    return static_cast<double>(X.row(original ? original[e.row] : e.row)[j]);
  }
};

template <class Real, class Y, class Sweep>
class CartRule {
 public:
  CartRule(const CartRows<Real, Y>& rows, const Stopping& stopping, double min_gain, int n_threads)
      : rows_(rows),
        stopping_(stopping),
        min_gain_(min_gain),
        n_threads_(n_threads),
        goes_left_(make_buffer<std::uint8_t>(rows.n)) {}

  bool split(const Cell& cell, Split& split, Cell& left, Cell& right) const {
    // Only the root comes here without having been looked at by its parent.
    if (cell.cursor == kUnseen && is_leaf(cell, rows_.list(0))) return false;
    if (cell.cursor == kLeafSeen) return false;
    const Cut cut = best(cell);
    if (cut.feature < 0) return false;
    Entry* const list = rows_.list(cut.feature);
    const Entry* const last = list + first_missing(list, cell);
    const Entry* const edge = list + cell.begin + cut.n_left;
    const std::int64_t n_missing = cell.end - (last - list);
    split.feature = static_cast<std::int32_t>(cut.feature);
    split.threshold = edge == last
                          ? rows_.x(edge[-1], cut.feature)
                          : between(rows_.x(edge[-1], cut.feature), rows_.x(*edge, cut.feature));
    const std::int64_t n_left = cut.n_left + (cut.missing_left ? n_missing : 0);
    split.missing_left = n_missing > 0 ? cut.missing_left : left_is_larger(cell, list, cut.n_left);
    for (std::int64_t i = cell.begin; i < cell.end; ++i) {
      const bool missing = list[i].rank == kMissing;
      goes_left_[list[i].row] = missing ? cut.missing_left : list + i < edge;
    }
    const std::int64_t middle = cell.begin + n_left;
    partition(list, cell, middle);
    left = {cell.begin, middle, cell.depth + 1, 0};
    right = {middle, cell.end, cell.depth + 1, 0};
    left.cursor = is_leaf(left, list) ? kLeafSeen : kInnerSeen;
    right.cursor = is_leaf(right, list) ? kLeafSeen : kInnerSeen;
    if (left.cursor == kLeafSeen && right.cursor == kLeafSeen) return true;
    each_feature(cell, [&](std::int64_t j) {
      if (j != cut.feature) partition(rows_.list(j), cell, middle);
    });
    return true;
  }

  static constexpr std::int32_t kUnseen = 0, kInnerSeen = 1, kLeafSeen = 2;

 private:
  // Starting threads takes as long as sweeping some ten thousand rows.
  int threads_for(const Cell& cell) const {
    return cell.end - cell.begin >= 16384 ? n_threads_ : 1;
  }

  template <class Task>
  void each_feature(const Cell& cell, const Task& task) const {
    parallel_for(rows_.X.n_features, threads_for(cell), task);
  }

  bool is_leaf(const Cell& cell, const Entry* list) const {
    if (cell.depth >= stopping_.max_depth) return true;
    double n = 0.0;
    for (std::int64_t i = cell.begin; i < cell.end && n <= stopping_.min_rows; ++i)
      n += rows_.weight ? std::max(rows_.weight[list[i].row], 1.0) : 1.0;
    if (n <= stopping_.min_rows) return true;
    const Y head = rows_.y[list[cell.begin].row];
    return std::all_of(list + cell.begin, list + cell.end,
                       [&](const Entry& e) { return rows_.y[e.row] == head; });
  }

  static std::int64_t first_missing(const Entry* list, const Cell& cell) {
    std::int64_t end = cell.end;
    while (end > cell.begin && list[end - 1].rank == kMissing) --end;
    return end;
  }

  bool left_is_larger(const Cell& cell, const Entry* list, std::int64_t n_left) const {
    double balance = 0.0;
    for (std::int64_t i = cell.begin; i < cell.end; ++i) {
      const double one = rows_.weight ? rows_.weight[list[i].row] : 1.0;
      balance += i < cell.begin + n_left ? one : -one;
    }
    return balance > 0.0;
  }

  // The best cut of the cell: of equal ones, that of the first feature, then the lowest.
  Cut best(const Cell& cell) const {
    const auto p = static_cast<std::size_t>(rows_.X.n_features);
    std::vector<Cut> cuts(p);
    double none = 0.0;
    if (threads_for(cell) > 1) {
      each_feature(cell, [&](std::int64_t j) {
        Sweep sweep(rows_.y, rows_.weight, rows_.n_classes);
        sweep.start(rows_.list(0) + cell.begin, rows_.list(0) + cell.end);
        cuts[static_cast<std::size_t>(j)] = sweep_along(sweep, cell, j);
        if (j == 0) none = sweep.none();
      });
    } else {
      Sweep sweep(rows_.y, rows_.weight, rows_.n_classes);
      sweep.start(rows_.list(0) + cell.begin, rows_.list(0) + cell.end);
      none = sweep.none();
      for (std::size_t j = 0; j < p; ++j)
        cuts[j] = sweep_along(sweep, cell, static_cast<std::int64_t>(j));
    }
    Cut winner;
    for (const Cut& cut : cuts)
      if (cut.value > winner.value) winner = cut;
    if (winner.feature >= 0 && min_gain_ > 0.0 && winner.value - none < min_gain_) return Cut();
    return winner;
  }

  Cut sweep_along(Sweep& sweep, const Cell& cell, std::int64_t j) const {
    const Entry* const list = rows_.list(j);
    const Entry* const first = list + cell.begin;
    const Entry* const last = list + first_missing(list, cell);
    const Entry* const end = list + cell.end;
    Cut cut;
    const auto consider = [&](const Entry* e, bool missing_left) {
      const double value = sweep.value();
      if (value > cut.value) cut = {value, e - first, j, missing_left};
    };
    if (first == last || (last == end && first->rank == last[-1].rank)) return cut;  // constant
    sweep.restart();
    for (const Entry* e = first; e + 1 < last; ++e) {
      sweep.take(e->row);
      if (e->rank != e[1].rank) consider(e + 1, false);
    }
    if (last == end) return cut;
    sweep.take(last[-1].row);
    consider(last, false);
    sweep.restart();
    for (const Entry* e = last; e < end; ++e) sweep.take(e->row);
    for (const Entry* e = first; e + 1 < last; ++e) {
      sweep.take(e->row);
      if (e->rank != e[1].rank) consider(e + 1, true);
    }
    return cut;
  }

  // Rows that go left move to the front, both sides keep their order.
  void partition(Entry* list, const Cell& cell, std::int64_t middle) const {
    thread_local std::vector<Entry> right;
    if (right.size() < static_cast<std::size_t>(cell.end - middle))
      right.resize(static_cast<std::size_t>(cell.end - middle));
    Entry* to_left = list + cell.begin;
    Entry* to_right = right.data();
    for (const Entry* e = list + cell.begin; e != list + cell.end; ++e) {
      const Entry entry = *e;
      const bool left = goes_left_[entry.row];
      if (left)
        *to_left++ = entry;
      else
        *to_right++ = entry;
    }
    std::copy(right.data(), to_right, to_left);
  }

  CartRows<Real, Y> rows_;
  Stopping stopping_;
  double min_gain_;
  int n_threads_;
  Buffer<std::uint8_t> goes_left_;  // (n,) of the cell being split; cells are disjoint
};

template <class Real, class Y, class Sweep>
TreeColumns grow_with(const Matrix<Real>& X, const Y* y, std::int32_t n_classes,
                      const Stopping& stopping, double min_gain, int n_threads) {
  using Rule = CartRule<Real, Y, Sweep>;
  const std::int64_t n = X.n_rows, p = X.n_features;
  const auto lists = make_buffer<Entry>(n * p);
  parallel_for(p, n_threads, [&](std::int64_t j) { sort_feature(X, j, lists.get() + j * n); });
  const CartRows<Real, Y> rows{X, nullptr, n, y, stopping.weight, n_classes, lists.get()};
  const Rule rule(rows, stopping, min_gain, n_threads);
  const auto number =
      make_buffer<std::uint32_t>(n);  // of a row within its part; parts are disjoint
  const auto grow_part = [&](const Cell& cell) {
    if (cell.cursor == Rule::kLeafSeen) return Growth<Rule>::whole(rule, cell);
    const std::int64_t m = cell.end - cell.begin;
    const auto size = static_cast<std::size_t>(m);
    const auto original = make_buffer<std::uint32_t>(m);
    const auto part_y = make_buffer<Y>(m);
    const auto part_weight = make_buffer<double>(stopping.weight ? m : 0);
    const auto part_lists = make_buffer<Entry>(m * p);
    const Entry* const first = lists.get() + cell.begin;
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t row = first[i].row;
      number[row] = static_cast<std::uint32_t>(i);
      original[i] = row;
      part_y[i] = y[row];
      if (stopping.weight) part_weight[i] = stopping.weight[row];
    }
    for (std::int64_t j = 0; j < p; ++j) {
      const Entry* const from = first + j * n;
      Entry* const to = part_lists.get() + j * m;
      for (std::int64_t i = 0; i < m; ++i) to[i] = {from[i].rank, number[from[i].row]};
    }
    const double* const weight = stopping.weight ? part_weight.get() : nullptr;
    const CartRows<Real, Y> part{X,         original.get(),  m, part_y.get(), weight,
                                 n_classes, part_lists.get()};
    const Rule part_rule(part, stopping, min_gain, 1);
    return Growth<Rule>::whole(part_rule, {0, m, cell.depth, cell.cursor});
  };
  return Growth<Rule>::run(rule, {0, n, 0, Rule::kUnseen}, n_threads, grow_part);
}

}  // namespace

template <class Real>
TreeColumns grow_cart(const Matrix<Real>& X, const Response& response, const Stopping& stopping,
                      double min_gain, int n_threads) {
  const auto with = [&](auto* sweep, const auto* y) {
    using Sweep = std::remove_pointer_t<decltype(sweep)>;
    using Y = std::remove_const_t<std::remove_pointer_t<decltype(y)>>;
    return grow_with<Real, Y, Sweep>(X, y, response.n_classes, stopping, min_gain, n_threads);
  };
  switch (response.criterion) {
    case Criterion::squared:
      return with(static_cast<SquaredSweep<double>*>(nullptr), response.target);
    case Criterion::entropy:
      return with(static_cast<EntropySweep*>(nullptr), response.y);
    case Criterion::misclassification:
      return with(static_cast<MisclassificationSweep*>(nullptr), response.y);
    default:
      break;
  }
  if (response.n_classes > 2) return with(static_cast<GiniSweep*>(nullptr), response.y);
  const auto bits = make_buffer<std::uint8_t>(X.n_rows);
  for (std::int64_t i = 0; i < X.n_rows; ++i)
    bits[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(response.y[i]);
  return with(static_cast<SquaredSweep<std::uint8_t>*>(nullptr),
              static_cast<const std::uint8_t*>(bits.get()));
}

template TreeColumns grow_cart(const Matrix<float>&, const Response&, const Stopping&, double, int);
template TreeColumns grow_cart(const Matrix<double>&, const Response&, const Stopping&, double,
                               int);

}  // namespace certree
