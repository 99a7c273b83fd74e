// The criteria of the greedy grower: what a sweep keeps of the rows left and right of a cut.
//
// Each has: the type of a response; start(rows), which puts all rows right; restart(), the
// same once more; take(row), which moves one left; value(), to be maximised. The decrease in
// impurity is decrease(value()).
//
// Rows may also be moved by groups. The sums of a group are width() numbers, the first of which is
// its weight: add(sums, row) adds a row to them, take(sums, 1) moves the group left and
// take(sums, -1) moves it back. Where is_ordered(), an optimal division of groups in two is a
// prefix of their order by score(sums).
#pragma once

#include "grow/grow.hpp"
#include "numbers.hpp"

namespace certree {

// Squared loss, and Gini for two classes, which is squared loss on 0 and 1.
template <class Y>
struct SquaredSweep {
  const Y* y;
  const double* weight;
  double w = 0.0, s = 0.0, w_left = 0.0, s_left = 0.0;

  SquaredSweep(const Y* y_, const double* weight_, std::int32_t) : y(y_), weight(weight_) {}

  void start(std::span<const RankedRow> rows) {
    w = s = 0.0;
    for (const auto stretch : stretches(rows))
      for (const RankedRow& e : stretch) {
        const double one = weight ? weight[e.row] : 1.0;
        w += one;
        s += one * static_cast<double>(y[e.row]);
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
  double decrease(double value) const {
    // The Gini index of two classes is twice the squared loss on 0 and 1.
    constexpr double unit = std::is_same_v<Y, double> ? 1.0 : 2.0;
    return unit * (value - s * s / w);
  }
  double mean_left() const { return s_left / w_left; }
  double mean_right() const { return (s - s_left) / (w - w_left); }

  std::size_t width() const { return 2; }
  void add(double* sums, std::uint32_t row) const {
    const double one = weight ? weight[row] : 1.0;
    sums[0] += one;
    sums[1] += one * static_cast<double>(y[row]);
  }
  void take(const double* sums, double sign) {
    w_left += sign * sums[0];
    s_left += sign * sums[1];
  }
  bool is_ordered() const { return true; }
  double score(const double* sums) const { return sums[1] / sums[0]; }
};

// Any number of classes: counts on both sides.
template <class Derived>
struct ClassSweep {
  const std::int32_t* y;
  const double* weight;
  std::vector<double> all, left, right;
  double w = 0.0, w_left = 0.0;
  std::size_t n_present = 0, last_present = 0;  // classes in the cell

  ClassSweep(const std::int32_t* y_, const double* weight_, std::int32_t n_classes)
      : y(y_),
        weight(weight_),
        all(static_cast<std::size_t>(n_classes)),
        left(all.size()),
        right(all.size()) {}

  void start(std::span<const RankedRow> rows) {
    std::fill(all.begin(), all.end(), 0.0);
    w = 0.0;
    for (const auto stretch : stretches(rows))
      for (const RankedRow& e : stretch) {
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
    restart();
  }
  void restart() {
    std::fill(left.begin(), left.end(), 0.0);
    right = all;
    w_left = 0.0;
    static_cast<Derived*>(this)->reset();
  }
  CERTREE_INLINE void take(std::uint32_t row) {
    move(static_cast<std::size_t>(y[row]), weight ? weight[row] : 1.0);
  }
  // Of two classes 0 and 1.
  double mean_left() const { return left.back() / w_left; }
  double mean_right() const { return right.back() / (w - w_left); }

  std::size_t width() const { return 1 + all.size(); }
  void add(double* sums, std::uint32_t row) const {
    const double one = weight ? weight[row] : 1.0;
    sums[0] += one;
    sums[1 + static_cast<std::size_t>(y[row])] += one;
  }
  void take(const double* sums, double sign) {
    for (std::size_t k = 0; k < all.size(); ++k)
      if (sums[1 + k] > 0.0) move(k, sign * sums[1 + k]);
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

// n log n as a whole multiple of 1 / scale, so that sums do not depend on the order of the rows and
// cuts that are equally good are seen to be.
class Information {
 public:
  static constexpr double kScale = 0x1p36;
  static constexpr double kMost = 0x1p22;  // above it, sums would not fit at this scale

  static std::int64_t of(double n, double scale) {
    return n > 0.0 ? static_cast<std::int64_t>(n * std::log(n) * scale) : 0;
  }
  // (n + 1,) the values of 0 .. n rows at kScale.
  static const std::int64_t* table(std::size_t n) {
    thread_local std::vector<std::int64_t> values;
    while (values.size() <= n) values.push_back(of(static_cast<double>(values.size()), kScale));
    return values.data();
  }
  // The largest scale at which the sums of a cell of weight w fit.
  static double scale_of(double w, std::size_t n_classes) {
    // Weights below 1 make n log n negative, but not below -1 / e for each class.
    const double largest = w * std::log(std::max(w, 1.0)) + static_cast<double>(n_classes) + 1.0;
    return w <= kMost ? kScale : std::ldexp(1.0, 60 - std::ilogb(largest));
  }
};

// The same of whole rows of a cell, looked up.
struct LookedUp {
  static constexpr double scale = Information::kScale;
  const std::int64_t* table = nullptr;

  void start(std::uint32_t n, std::size_t) { table = Information::table(n); }
  std::int64_t operator[](std::uint32_t n) const { return table[n]; }
};

// The same where cells may have more rows than the table holds; parts of the tree do not.
struct LookedUpOrNot {
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

// Cross entropy of rows that weigh.
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

// Cross entropy of rows that count once each.
template <class Part>
struct CountedEntropySweep {
  const std::int32_t* y;
  std::vector<std::uint32_t> all, left;
  Part part;
  std::uint32_t n = 0, n_left = 0;
  std::int64_t sum = 0, parts = 0;
  std::size_t n_present = 0, last_present = 0;  // classes in the cell

  CountedEntropySweep(const std::int32_t* y_, const double*, std::int32_t n_classes)
      : y(y_), all(static_cast<std::size_t>(n_classes)), left(all.size()) {}

  void start(std::span<const RankedRow> rows) {
    n = static_cast<std::uint32_t>(rows.size());
    part.start(n, all.size());
    std::fill(all.begin(), all.end(), 0);
    for (const auto stretch : stretches(rows))
      for (const RankedRow& e : stretch) ++all[static_cast<std::size_t>(y[e.row])];
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
  // Of two classes 0 and 1.
  double mean_left() const { return static_cast<double>(left.back()) / n_left; }
  double mean_right() const { return static_cast<double>(all.back() - left.back()) / (n - n_left); }

  std::size_t width() const { return 1 + all.size(); }
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
    const auto moved = static_cast<std::uint32_t>(amount);  // wraps round where it is negative
    parts += (part[l + moved] - part[l]) - (part[r] - part[r - moved]);
    left[k] = l + moved;
    n_left += moved;
  }
};

// The same for two classes, which are 0 and 1: nothing is looked up between cuts.
template <class Part>
struct BinaryEntropySweep {
  const std::uint8_t* y;
  std::size_t n_classes;
  Part part;
  std::uint32_t n = 0, ones = 0, n_left = 0, ones_left = 0;

  BinaryEntropySweep(const std::uint8_t* y_, const double*, std::int32_t n_classes_)
      : y(y_), n_classes(static_cast<std::size_t>(n_classes_)) {}

  void start(std::span<const RankedRow> rows) {
    n = static_cast<std::uint32_t>(rows.size());
    part.start(n, n_classes);
    ones = 0;
    for (const auto stretch : stretches(rows))
      for (const RankedRow& e : stretch) ones += y[e.row];
    restart();
  }
  void restart() { n_left = ones_left = 0; }
  void take(std::uint32_t row) {
    ++n_left;
    ones_left += y[row];
  }
  std::int64_t side(std::uint32_t rows, std::uint32_t of_class_one) const {
    return part[of_class_one] + part[rows - of_class_one] - part[rows];
  }
  double value() const {
    const std::int64_t total = side(n_left, ones_left) + side(n - n_left, ones - ones_left);
    return static_cast<double>(total) / part.scale;
  }
  double decrease(double value) const {
    return value - static_cast<double>(side(n, ones)) / part.scale;
  }
  double mean_left() const { return static_cast<double>(ones_left) / n_left; }
  double mean_right() const { return static_cast<double>(ones - ones_left) / (n - n_left); }

  std::size_t width() const { return 2; }
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

// The sweep of the parts of a tree, of which none has more than 1 / kParts of the rows.
template <class Sweep>
struct OfParts {
  using type = Sweep;
};
template <>
struct OfParts<BinaryEntropySweep<LookedUpOrNot>> {
  using type = BinaryEntropySweep<LookedUp>;
};
template <>
struct OfParts<CountedEntropySweep<LookedUpOrNot>> {
  using type = CountedEntropySweep<LookedUp>;
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
