// The split criteria of CART, as sweeps: a sweep moves the rows of a node one by one from the right
// child to the left, and updates the value of the split.
//
// A sweep is constructed from the responses of all rows, (1, n), or (q, n) for q outputs.
// start(rows) puts the rows of a node in the right child, restart() does so again, and take(row)
// moves a row to the left. value() is to be maximised; decrease(value()) is the decrease in
// impurity, times the weight of the node.
//
// Rows can also be moved in groups, such as those of a category. The sums of a group are width()
// numbers, of which the first is its weight: add(sums, row) adds a row to them, take(sums, 1) moves
// the group to the left, and take(sums, -1) moves it back. If is_ordered(), some optimal split of
// groups is a prefix of their order by score(sums).
//
// weights() returns the weights of both children, and rows() their numbers of rows, if these are
// counted in addition to weights. Then groups have one more number, n_sums() in all.
#pragma once

#include <bit>

#include "grow/grow.hpp"
#include "numbers.hpp"

namespace certree {

// A quantity in both children of a split.
struct ChildValues {
  double left, right;
  double least() const { return std::min(left, right); }
};

// Counts the rows in the left child of a split, if rows have weights and a limit on rows needs it.
struct RowCount {
  bool is_on = false;  // whether rows are counted
  double all = 0.0, left = 0.0;

  void start(std::span<const RankedRow> some) {
    all = is_on ? static_cast<double>(some.size()) : 0.0;
    left = 0.0;
  }
  void take() {
    if (is_on) left += 1.0;
  }
  // Adds a row to the sum of a group, and moves a group.
  void add(double* sum) const {
    if (is_on) *sum += 1.0;
  }
  void take(const double* sum, double sign) {
    if (is_on) left += sign * *sum;
  }
  ChildValues children() const { return {left, all - left}; }
};

// Squared error; and the Gini index of two classes, which is squared error on 0 and 1.
template <class Y>
struct SquaredSweep {
  const Y* y;
  const double* weight;
  RowCount count;
  double w = 0.0, s = 0.0, w_left = 0.0, s_left = 0.0;

  SquaredSweep(Table<const Y> y_, const double* weight_, bool counts_rows, std::int32_t)
      : y(y_.data), weight(weight_), count{counts_rows} {}

  void start(std::span<const RankedRow> rows) {
    w = s = 0.0;
    for (const auto chunk : chunks(rows))
      for (const RankedRow& e : chunk) {
        const double one = weight ? weight[e.row] : 1.0;
        w += one;
        s += one * static_cast<double>(y[e.row]);
      }
    count.start(rows);
    restart();
  }
  void restart() { w_left = s_left = count.left = 0.0; }
  void take(std::uint32_t row) {
    const double one = weight ? weight[row] : 1.0;
    w_left += one;
    s_left += one * static_cast<double>(y[row]);
    if (weight) count.take();
  }
  double value() const {
    const double s_right = s - s_left;
    return s_left * s_left / w_left + s_right * s_right / (w - w_left);
  }
  double decrease(double value) const {
    // The Gini index of two classes is twice the squared loss on 0 and 1.
    constexpr double unit = std::is_same_v<Y, double> ? 1.0 : 2.0;
    return unit * (value - s * s / w);
  }
  double mean_left() const { return s_left / w_left; }
  double mean_right() const { return (s - s_left) / (w - w_left); }
  ChildValues weights() const { return {w_left, w - w_left}; }
  ChildValues rows() const { return count.children(); }

  std::size_t width() const { return 2; }
  std::size_t n_sums() const { return count.is_on ? 3 : 2; }
  void add(double* sums, std::uint32_t row) const {
    const double one = weight ? weight[row] : 1.0;
    sums[0] += one;
    sums[1] += one * static_cast<double>(y[row]);
    count.add(sums + 2);
  }
  void take(const double* sums, double sign) {
    w_left += sign * sums[0];
    s_left += sign * sums[1];
    count.take(sums + 2, sign);
  }
  bool is_ordered() const { return true; }
  double score(const double* sums) const { return sums[1] / sums[0]; }
};

// Half of the Poisson deviance. A child with all numbers 0 would predict 0, so that every other
// number had probability 0: such a split is not made.
struct PoissonSweep : SquaredSweep<double> {
  using SquaredSweep::SquaredSweep;
  // A sum of a child below this fraction of that of the node is a rounding error of 0.
  static constexpr double kNothing = 0x1p-46;

  static double part(double sum, double weight) { return sum * std::log(sum / weight); }
  double value() const {
    const double s_right = s - s_left;
    if (!(std::min(s_left, s_right) > s * kNothing)) return -HUGE_VAL;
    return part(s_left, w_left) + part(s_right, w - w_left);
  }
  double decrease(double value) const { return value - part(s, w); }
  // Returns whether a group cannot be a child on its own.
  bool refuses(const double* sums) const { return sums[1] <= 0.0; }
};

// A Fenwick tree of sums over the distinct values of a node: changes of one value, and searches for
// the median, take O(log n) steps (Fenwick, "A new data structure for cumulative frequency tables",
// 1994).
class PartialSums {
 public:
  struct Sum {
    double weight = 0.0, sum = 0.0;
  };

  void restart(std::size_t n) { sums_.assign(n + 1, {}); }
  void add(std::size_t place, Sum one) {
    for (std::size_t i = place + 1; i < sums_.size(); i += i & (0 - i)) {
      sums_[i].weight += one.weight;
      sums_[i].sum += one.sum;
    }
  }
  std::size_t size() const { return sums_.size() - 1; }
  const Sum& operator[](std::size_t i) const { return sums_[i]; }

 private:
  std::vector<Sum> sums_;
};

// Absolute error: distances from the median. Groups cannot be moved by sums, as these do not
// determine the median.
struct AbsoluteSweep {
  const double* y;
  const double* weight;
  RowCount count;
  PartialSums all, left;
  PartialSums::Sum total, total_left;
  std::vector<double> numbers;       // distinct values of the node, ascending
  std::vector<std::uint32_t> place;  // (n,) index in numbers, for the rows of the node
  double unsplit = 0.0;

  AbsoluteSweep(Table<const double> y_, const double* weight_, bool counts_rows, std::int32_t)
      : y(y_.data), weight(weight_), count{counts_rows} {}

  void start(std::span<const RankedRow> rows) {
    thread_local std::vector<std::uint32_t> order;
    order.clear();
    std::uint32_t last = 0;
    for (const auto chunk : chunks(rows))
      for (const RankedRow& e : chunk) {
        order.push_back(e.row);
        last = std::max(last, e.row);
      }
    if (place.size() <= last) place.resize(std::size_t{last} + 1);
    const auto is_before = [&](std::uint32_t a, std::uint32_t b) { return y[a] < y[b]; };
    with_interrupt_checks(order.size(), is_before,
                          [&](const auto& f) { std::ranges::sort(order, f); });
    numbers.clear();
    for (const auto chunk : chunks(std::span<const std::uint32_t>(order)))
      for (const std::uint32_t row : chunk) {
        if (numbers.empty() || numbers.back() != y[row]) numbers.push_back(y[row]);
        place[row] = static_cast<std::uint32_t>(numbers.size() - 1);
      }
    all.restart(numbers.size());
    total = {};
    for (const auto chunk : chunks(rows))
      for (const RankedRow& e : chunk) add_to(all, total, e.row);
    count.start(rows);
    restart();
    unsplit = distances([&](std::size_t i) { return all[i]; }, total);
  }
  void restart() {
    left.restart(numbers.size());
    total_left = {};
    count.left = 0.0;
  }
  void take(std::uint32_t row) {
    add_to(left, total_left, row);
    if (weight) count.take();
  }
  double value() const {
    const auto below = [&](std::size_t i) { return left[i]; };
    const auto others = [&](std::size_t i) { return less(all[i], left[i]); };
    return -distances(below, total_left) - distances(others, less(total, total_left));
  }
  double decrease(double value) const { return value + unsplit; }
  double mean_left() const { return total_left.sum / total_left.weight; }
  double mean_right() const {
    const PartialSums::Sum right = less(total, total_left);
    return right.sum / right.weight;
  }
  ChildValues weights() const { return {total_left.weight, total.weight - total_left.weight}; }
  ChildValues rows() const { return count.children(); }

  // The sums of groups serve to sort them by their means.
  std::size_t width() const { return 2; }
  std::size_t n_sums() const { return 2; }
  void add(double* sums, std::uint32_t row) const {
    const double one = weight ? weight[row] : 1.0;
    sums[0] += one;
    sums[1] += one * y[row];
  }
  double score(const double* sums) const { return sums[1] / sums[0]; }

 private:
  static PartialSums::Sum less(const PartialSums::Sum& a, const PartialSums::Sum& b) {
    return {a.weight - b.weight, a.sum - b.sum};
  }
  void add_to(PartialSums& sums, PartialSums::Sum& to, std::uint32_t row) const {
    const double one = weight ? weight[row] : 1.0;
    sums.add(place[row], {one, one * y[row]});
    to = {to.weight + one, to.sum + one * y[row]};
  }
  // Returns the sum of distances of rows from their median. at(i): entry i of their Fenwick tree;
  // sum: of all these rows.
  template <class At>
  double distances(const At& at, const PartialSums::Sum& sum) const {
    std::size_t below = 0;  // number of values before the median
    PartialSums::Sum lower;
    for (std::size_t step = std::bit_floor(numbers.size()); step > 0; step /= 2) {
      if (below + step >= numbers.size()) continue;
      const PartialSums::Sum one = at(below + step);
      if (2.0 * (lower.weight + one.weight) >= sum.weight) continue;
      below += step;
      lower = {lower.weight + one.weight, lower.sum + one.sum};
    }
    const double median = numbers[below];
    const PartialSums::Sum upper = less(sum, lower);
    return (median * lower.weight - lower.sum) + (upper.sum - median * upper.weight);
  }
};

// The base of criteria for any number of classes: class weights in both children.
template <class Derived>
struct ClassSweep {
  const std::int32_t* y;
  const double* weight;
  RowCount count;
  std::vector<double> all, left, right;
  double w = 0.0, w_left = 0.0;
  std::size_t n_present = 0, last_present = 0;  // classes in the node

  ClassSweep(Table<const std::int32_t> y_, const double* weight_, bool counts_rows,
             std::int32_t n_classes)
      : y(y_.data),
        weight(weight_),
        count{counts_rows},
        all(static_cast<std::size_t>(n_classes)),
        left(all.size()),
        right(all.size()) {}

  void start(std::span<const RankedRow> rows) {
    std::fill(all.begin(), all.end(), 0.0);
    w = 0.0;
    for (const auto chunk : chunks(rows))
      for (const RankedRow& e : chunk) {
        const double one = weight ? weight[e.row] : 1.0;
        all[static_cast<std::size_t>(y[e.row])] += one;
        w += one;
      }
    n_present = 0;
    for (std::size_t k = 0; k < all.size(); ++k)
      if (all[k] > 0.0) {
        ++n_present;
        last_present = k;
      }
    count.start(rows);
    restart();
  }
  void restart() {
    std::fill(left.begin(), left.end(), 0.0);
    right = all;
    w_left = count.left = 0.0;
    static_cast<Derived*>(this)->reset();
  }
  CERTREE_INLINE void take(std::uint32_t row) {
    move(static_cast<std::size_t>(y[row]), weight ? weight[row] : 1.0);
    if (weight) count.take();
  }
  // Means of the children; for two classes 0 and 1.
  double mean_left() const { return left.back() / w_left; }
  double mean_right() const { return right.back() / (w - w_left); }
  ChildValues weights() const { return {w_left, w - w_left}; }
  ChildValues rows() const { return count.children(); }

  std::size_t width() const { return 1 + all.size(); }
  std::size_t n_sums() const { return width() + (count.is_on ? 1 : 0); }
  void add(double* sums, std::uint32_t row) const {
    const double one = weight ? weight[row] : 1.0;
    sums[0] += one;
    sums[1 + static_cast<std::size_t>(y[row])] += one;
    count.add(sums + width());
  }
  void take(const double* sums, double sign) {
    for (std::size_t k = 0; k < all.size(); ++k)
      if (sums[1 + k] > 0.0) move(k, sign * sums[1 + k]);
    count.take(sums + width(), sign);
  }
  bool is_ordered() const { return n_present <= 2; }
  double score(const double* sums) const { return sums[1 + last_present] / sums[0]; }

 private:
  CERTREE_INLINE void move(std::size_t k, double amount) {
    static_cast<Derived*>(this)->moved(left[k], right[k], amount);
    left[k] += amount;
    right[k] -= amount;
    w_left += amount;
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
  void moved(double from_left, double from_right, double amount) {
    squares_left += amount * (2.0 * from_left + amount);
    squares_right -= amount * (2.0 * from_right - amount);
  }
  double value() const { return squares_left / w_left + squares_right / (w - w_left); }
  double decrease(double value) const { return value - squares / w; }
};

// n log n as an integer multiple of 1 / scale, so that sums do not depend on the order of the rows,
// and ties between splits are exact.
class Information {
 public:
  static constexpr double kScale = 0x1p36;
  static constexpr double kMost = 0x1p22;  // above it, sums would not fit at this scale

  // Returns n log n in units of 1 / scale.
  static std::int64_t of(double n, double scale) {
    return n > 0.0 ? static_cast<std::int64_t>(n * std::log(n) * scale) : 0;
  }
  // Returns a table of the values for 0, ..., n rows at kScale.
  static const std::int64_t* table(std::size_t n) {
    thread_local std::vector<std::int64_t> values;
    while (values.size() <= n) values.push_back(of(static_cast<double>(values.size()), kScale));
    return values.data();
  }
  // Returns the largest scale at which the sums of a node of weight w fit into an int64.
  static double scale_of(double w, std::size_t n_classes) {
    // Weights below 1 make n log n negative, but not below -1 / e for each class.
    const double largest = w * std::log(std::max(w, 1.0)) + static_cast<double>(n_classes) + 1.0;
    return w <= kMost ? kScale : std::ldexp(1.0, 60 - std::ilogb(largest));
  }
};

// n log n for numbers of rows of a node, from a table.
struct TabulatedTerms {
  static constexpr double scale = Information::kScale;
  const std::int64_t* table = nullptr;

  void start(std::uint32_t n, std::size_t) { table = Information::table(n); }
  std::int64_t operator[](std::uint32_t n) const { return table[n]; }
};

// The same for nodes that may have more rows than the table; subtrees grown independently do not.
struct PartlyTabulatedTerms {
  double scale = Information::kScale;
  const std::int64_t* table = nullptr;

  void start(std::uint32_t n, std::size_t n_classes) {
    scale = Information::scale_of(n, n_classes);
    table = n <= Information::kMost ? Information::table(n) : nullptr;
  }
  std::int64_t operator[](std::uint32_t n) const {
    return table ? table[n] : Information::of(n, scale);
  }
};

// Cross entropy of weighted rows.
struct EntropySweep : ClassSweep<EntropySweep> {
  using ClassSweep::ClassSweep;
  std::int64_t sum_left = 0, sum_right = 0, sum = 0;
  double scale = 1.0;

  std::int64_t part(double n) const { return Information::of(n, scale); }
  void reset() {
    scale = Information::scale_of(w, all.size());
    sum = 0;
    for (const double n : all) sum += part(n);
    sum_left = 0;
    sum_right = sum;
  }
  void moved(double from_left, double from_right, double amount) {
    sum_left += part(from_left + amount) - part(from_left);
    sum_right += part(from_right - amount) - part(from_right);
  }
  double value() const {
    const std::int64_t total = sum_left - part(w_left) + sum_right - part(w - w_left);
    return static_cast<double>(total) / scale;
  }
  double decrease(double value) const { return value - static_cast<double>(sum - part(w)) / scale; }
};

// Cross entropy of rows without weights.
template <class Part>
struct CountedEntropySweep {
  const std::int32_t* y;
  std::vector<std::uint32_t> all, left;
  Part part;
  std::uint32_t n = 0, n_left = 0;
  std::int64_t sum = 0, parts = 0;
  std::size_t n_present = 0, last_present = 0;  // classes in the node

  CountedEntropySweep(Table<const std::int32_t> y_, const double*, bool, std::int32_t n_classes)
      : y(y_.data), all(static_cast<std::size_t>(n_classes)), left(all.size()) {}

  void start(std::span<const RankedRow> rows) {
    n = static_cast<std::uint32_t>(rows.size());
    part.start(n, all.size());
    std::fill(all.begin(), all.end(), 0);
    for (const auto chunk : chunks(rows))
      for (const RankedRow& e : chunk) ++all[static_cast<std::size_t>(y[e.row])];
    sum = 0;
    n_present = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      sum += part[all[k]];
      if (all[k] == 0) continue;
      ++n_present;
      last_present = k;
    }
    restart();
  }
  void restart() {
    std::fill(left.begin(), left.end(), 0);
    n_left = 0;
    parts = sum;
  }
  void take(std::uint32_t row) { move(static_cast<std::size_t>(y[row]), 1); }
  double value() const {
    return static_cast<double>(parts - part[n_left] - part[n - n_left]) / part.scale;
  }
  double decrease(double value) const {
    return value - static_cast<double>(sum - part[n]) / part.scale;
  }
  // Means of the children; for two classes 0 and 1.
  double mean_left() const { return static_cast<double>(left.back()) / n_left; }
  double mean_right() const { return static_cast<double>(all.back() - left.back()) / (n - n_left); }
  ChildValues weights() const {
    return {static_cast<double>(n_left), static_cast<double>(n - n_left)};
  }
  ChildValues rows() const { return weights(); }

  std::size_t width() const { return 1 + all.size(); }
  std::size_t n_sums() const { return width(); }
  void add(double* sums, std::uint32_t row) const {
    sums[0] += 1.0;
    sums[1 + static_cast<std::size_t>(y[row])] += 1.0;
  }
  void take(const double* sums, double sign) {
    for (std::size_t k = 0; k < all.size(); ++k)
      if (sums[1 + k] > 0.0) move(k, static_cast<std::int32_t>(sign * sums[1 + k]));
  }
  bool is_ordered() const { return n_present <= 2; }
  double score(const double* sums) const { return sums[1 + last_present] / sums[0]; }

 private:
  void move(std::size_t k, std::int32_t amount) {
    const std::uint32_t l = left[k], r = all[k] - l;
    const auto moved = static_cast<std::uint32_t>(amount);  // wraps around if negative
    parts += (part[l + moved] - part[l]) - (part[r] - part[r - moved]);
    left[k] = l + moved;
    n_left += moved;
  }
};

// The same for two classes, 0 and 1. take() only counts, and value() reads the table.
template <class Part>
struct BinaryEntropySweep {
  const std::uint8_t* y;
  std::size_t n_classes;
  Part part;
  std::uint32_t n = 0, ones = 0, n_left = 0, ones_left = 0;

  BinaryEntropySweep(Table<const std::uint8_t> y_, const double*, bool, std::int32_t n_classes_)
      : y(y_.data), n_classes(static_cast<std::size_t>(n_classes_)) {}

  void start(std::span<const RankedRow> rows) {
    n = static_cast<std::uint32_t>(rows.size());
    part.start(n, n_classes);
    ones = 0;
    for (const auto chunk : chunks(rows))
      for (const RankedRow& e : chunk) ones += y[e.row];
    restart();
  }
  void restart() { n_left = ones_left = 0; }
  void take(std::uint32_t row) {
    ++n_left;
    ones_left += y[row];
  }
  std::int64_t value_of(std::uint32_t rows, std::uint32_t of_class_one) const {
    return part[of_class_one] + part[rows - of_class_one] - part[rows];
  }
  double value() const {
    const std::int64_t total = value_of(n_left, ones_left) + value_of(n - n_left, ones - ones_left);
    return static_cast<double>(total) / part.scale;
  }
  double decrease(double value) const {
    return value - static_cast<double>(value_of(n, ones)) / part.scale;
  }
  double mean_left() const { return static_cast<double>(ones_left) / n_left; }
  double mean_right() const { return static_cast<double>(ones - ones_left) / (n - n_left); }
  ChildValues weights() const {
    return {static_cast<double>(n_left), static_cast<double>(n - n_left)};
  }
  ChildValues rows() const { return weights(); }

  std::size_t width() const { return 2; }
  std::size_t n_sums() const { return width(); }
  void add(double* sums, std::uint32_t row) const {
    sums[0] += 1.0;
    sums[1] += y[row];
  }
  void take(const double* sums, double sign) {
    n_left += static_cast<std::uint32_t>(static_cast<std::int32_t>(sign * sums[0]));
    ones_left += static_cast<std::uint32_t>(static_cast<std::int32_t>(sign * sums[1]));
  }
  bool is_ordered() const { return true; }
  double score(const double* sums) const { return sums[1] / sums[0]; }
};

// The sum of a criterion over the outputs of each row.
template <class One>
struct SummedSweep {
  std::vector<One> each;
  const double* weight;
  RowCount count;

  template <class Y>
  SummedSweep(Table<const Y> y, const double* weight_, bool counts_rows, std::int32_t n_classes)
      : weight(weight_), count{counts_rows} {
    for (std::int64_t k = 0; k < y.n_rows; ++k)
      each.emplace_back(Table<const Y>{y.row(k), 1, y.width}, weight_, false, n_classes);
  }

  void start(std::span<const RankedRow> rows) {
    for (One& one : each) one.start(rows);
    count.start(rows);
    count.left = 0.0;
  }
  void restart() {
    for (One& one : each) one.restart();
    count.left = 0.0;
  }
  void take(std::uint32_t row) {
    for (One& one : each) one.take(row);
    if (weight) count.take();
  }
  double value() const {
    return sum([](const One& one) { return one.value(); });
  }
  double decrease(double value) const {
    return value + sum([](const One& one) { return one.decrease(0.0); });
  }
  // Monotonic constraints need a single output.
  double mean_left() const { return 0.0; }
  double mean_right() const { return 0.0; }
  ChildValues weights() const { return each.front().weights(); }
  ChildValues rows() const { return count.children(); }

  // The sums of a group are those of each output in turn, each with the weight.
  std::size_t width() const { return each.size() * each.front().width(); }
  std::size_t n_sums() const { return width() + (count.is_on ? 1 : 0); }
  void add(double* sums, std::uint32_t row) const {
    for (std::size_t k = 0; k < each.size(); ++k) each[k].add(sums + k * each[k].width(), row);
    count.add(sums + width());
  }
  void take(const double* sums, double sign) {
    for (std::size_t k = 0; k < each.size(); ++k) each[k].take(sums + k * each[k].width(), sign);
    count.take(sums + width(), sign);
  }
  // The means of different outputs have different orders.
  bool is_ordered() const { return false; }
  double score(const double*) const { return 0.0; }

 private:
  template <class Term>
  double sum(const Term& term) const {
    double total = 0.0;
    for (const One& one : each) total += term(one);
    return total;
  }
};

// The sweep for subtrees that are grown independently, which have at most 1 / kParts of the rows.
template <class Sweep>
struct OfParts {
  using type = Sweep;
};
template <>
struct OfParts<BinaryEntropySweep<PartlyTabulatedTerms>> {
  using type = BinaryEntropySweep<TabulatedTerms>;
};
template <>
struct OfParts<CountedEntropySweep<PartlyTabulatedTerms>> {
  using type = CountedEntropySweep<TabulatedTerms>;
};

struct MisclassificationSweep : ClassSweep<MisclassificationSweep> {
  using ClassSweep::ClassSweep;
  void reset() {}
  void moved(double, double, double) {}
  double value() const {
    return *std::max_element(left.begin(), left.end()) +
           *std::max_element(right.begin(), right.end());
  }
  double decrease(double value) const { return value - *std::max_element(all.begin(), all.end()); }
};

}  // namespace certree
