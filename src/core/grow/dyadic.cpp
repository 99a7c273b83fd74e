// Dyadic trees: depth d halves feature d mod p of the bounding box of the training rows.
//
// The place of a value in the range of its feature is a code of 48 bits: bit b (from the top) says
// whether it lies above the b-th midpoint. Regions of nodes are prefixes of codes. So a chain of
// regions with the same rows is skipped by finding the highest bit in which the codes of the rows
// of a node differ.
#include <bit>

#include "grow/growth.hpp"

namespace certree {
namespace {

// Fewer than the 53 bits of a double, so that the first guess of a code is nearly always right.
constexpr int kBits = 48;
constexpr double kCodes = 0x1p48;
constexpr std::uint64_t kLastCode = (std::uint64_t{1} << kBits) - 1;

// The range of a feature, and the codes of values in it.
struct Interval {
  double low = 0.0;
  double half_range = 0.0;

  // Returns the threshold at a fraction of the range, a multiple of 2^-48. It does not decrease
  // with the fraction, is finite for any finite range, and exact under scaling by powers of two.
  double at(double fraction) const { return (low + half_range * fraction) + half_range * fraction; }
  // Returns the lower edge of the values with a code.
  double edge(std::uint64_t code) const { return at(static_cast<double>(code) / kCodes); }

  bool is_above(double x, std::uint64_t code) const { return code == 0 || x > edge(code); }
  bool has_code(double x, std::uint64_t code) const {
    return is_above(x, code) && (code == kLastCode || !is_above(x, code + 1));
  }

  // Returns the code q with edge(q) < x <= edge(q + 1); 0 for the smallest value, the last for NaN.
  // If there are only few doubles in a range, many edges are equal and the guess may be far off.
  std::uint64_t code(double x) const {
    if (std::isnan(x)) return kLastCode;
    if (x <= low) return 0;
    const std::uint64_t guess = guess_code(x);
    return has_code(x, guess) ? guess : bisect_code(x);
  }

 private:
  std::uint64_t guess_code(double x) const {
    if (!(half_range > 0.0)) return kLastCode;  // the range underflowed: every edge is low
    const double fraction = std::min((x * 0.5 - low * 0.5) / half_range, 1.0);
    return static_cast<std::uint64_t>(std::min(fraction * kCodes, static_cast<double>(kLastCode)));
  }
  // Returns the last code whose edge is below x, in one step for each bit.
  std::uint64_t bisect_code(double x) const {
    std::uint64_t q = 0;
    for (int b = kBits - 1; b >= 0; --b) {
      const std::uint64_t next = q | std::uint64_t{1} << b;
      if (is_above(x, next)) q = next;
    }
    return q;
  }
};

template <class Real>
std::vector<Interval> intervals_of(const Table<const Real>& X) {
  const Box box(X);
  std::vector<Interval> intervals(box.low.size());
  for (std::size_t j = 0; j < intervals.size(); ++j)
    if (box.low[j] <= box.high[j]) intervals[j] = {box.low[j], box.half_range(j)};
  return intervals;
}

// The rule of Growth<DyadicRule> that splits nodes.
class DyadicRule {
 public:
  using Node = GrowingNode;

  template <class Real>
  DyadicRule(const Table<const Real>& X, const Stopping& stopping, bool expand, int n_threads)
      : n_features_(X.width),
        stopping_(stopping),
        expand_(expand),
        intervals_(intervals_of(X)),
        codes_(make_buffer<std::uint64_t>(X.n_rows, X.width)),
        rows_(make_buffer<Row>(X.n_rows)) {
    constexpr std::int64_t kBlock = 8192;
    parallel_for((X.n_rows + kBlock - 1) / kBlock, n_threads, [&](std::int64_t block) {
      const std::int64_t end = std::min(X.n_rows, (block + 1) * kBlock);
      count_steps((end - block * kBlock) * X.width);
      for (std::int64_t i = block * kBlock; i < end; ++i) {
        const Real* x = X.row(i);
        std::uint64_t* code = codes_.get() + i * n_features_;
        for (std::int64_t j = 0; j < n_features_; ++j)
          code[j] = intervals_[static_cast<std::size_t>(j)].code(static_cast<double>(x[j]));
        rows_[static_cast<std::size_t>(i)] = {static_cast<std::int32_t>(i), stopping.class_of(i)};
      }
    });
  }

  bool split(const Node& node, Split& split, Node& left, Node& right) const {
    if (node.depth >= stopping_.max_depth) return false;
    if (stopping_.holds(rows_.get() + node.begin, rows_.get() + node.end)) return false;
    const std::int64_t separating_depth = first_separating_depth(node);
    if (separating_depth < 0) return false;  // no halving ever separates these rows
    if (separating_depth >= stopping_.max_depth && !expand_) {
      split.chain = stopping_.max_depth - node.depth + 1;  // the chain ends at the depth limit
      return false;
    }
    const auto depth = expand_ ? node.depth : static_cast<std::int32_t>(separating_depth);
    const std::int64_t j = depth % n_features_;
    const int n_halvings = static_cast<int>(depth / n_features_);
    split.feature = static_cast<std::int32_t>(j);
    split.threshold = midpoint(node, j, n_halvings);
    split.chain = depth - node.depth + 1;
    const std::uint64_t bit = std::uint64_t{1} << (kBits - 1 - n_halvings);
    Row* const first = rows_.get() + node.begin;
    Row* const last = rows_.get() + node.end;
    const auto is_left = [this, j, bit](const Row& row) { return (code(row, j) & bit) == 0; };
    const Row* const middle = with_interrupt_checks(
        last - first, is_left, [&](const auto& f) { return std::partition(first, last, f); });
    const std::int64_t boundary = node.begin + (middle - first);
    left = {node.begin, boundary, depth + 1};
    right = {boundary, node.end, depth + 1};
    return true;
  }

 private:
  struct Row {
    std::int32_t index;
    std::int32_t y;
  };

  std::uint64_t code(const Row& row, std::int64_t j) const {
    return codes_[static_cast<std::size_t>(row.index * n_features_ + j)];
  }

  // Returns the smallest depth, from that of the node on, whose halving has rows in both children;
  // -1 if there is none. Features are examined in the order of the cycle, eight (a cache line of
  // codes) at a time.
  std::int64_t first_separating_depth(const Node& node) const {
    const std::int64_t p = n_features_;
    const std::int64_t start = node.depth % p;
    const Row head = rows_[static_cast<std::size_t>(node.begin)];
    StepCounter counter;
    std::int64_t best = -1;
    for (std::int64_t done = 0; done < p;) {
      const std::int64_t j = (start + done) % p;
      const std::int64_t width = std::min<std::int64_t>({8, p - j, p - done});
      const std::int64_t n_halvings_now = (node.depth + done) / p;
      const std::uint64_t bit_now =
          n_halvings_now < kBits ? std::uint64_t{1} << (kBits - 1 - n_halvings_now) : 0;
      std::uint64_t differ[8] = {};
      for (std::int64_t i = node.begin + 1; i < node.end; ++i, counter.add()) {
        const Row row = rows_[static_cast<std::size_t>(i)];
        for (std::int64_t w = 0; w < width; ++w) differ[w] |= code(row, j + w) ^ code(head, j + w);
        if (differ[0] & bit_now) return node.depth + done;
      }
      for (std::int64_t w = 0; w < width; ++w) {
        if (differ[w] == 0) continue;
        const std::int64_t n_halvings = std::countl_zero(differ[w]) - (64 - kBits);
        const std::int64_t depth = n_halvings * p + j + w;
        if (best < 0 || depth < best) best = depth;
      }
      done += width;
      if (best >= 0 && best < node.depth + done) return best;
    }
    return best;
  }

  // Returns the threshold that halves the region of a node along feature j once n_halvings halvings
  // along it are done.
  double midpoint(const Node& node, std::int64_t j, int n_halvings) const {
    const std::uint64_t prefix =
        code(rows_[static_cast<std::size_t>(node.begin)], j) >> (kBits - n_halvings);
    const Interval& interval = intervals_[static_cast<std::size_t>(j)];
    return interval.edge((2 * prefix + 1) << (kBits - 1 - n_halvings));
  }

  std::int64_t n_features_;
  Stopping stopping_;
  bool expand_;
  std::vector<Interval> intervals_;
  Buffer<std::uint64_t> codes_;  // (n, p)
  Buffer<Row> rows_;             // each node has a range of it
};

}  // namespace

template <class Real>
TreeColumns grow_dyadic(Table<const Real> X, const Stopping& stopping, bool expand, int n_threads) {
  const DyadicRule rule(X, stopping, expand, n_threads);
  return Growth<DyadicRule>::run(rule, {0, X.n_rows, 0}, n_threads);
}

template TreeColumns grow_dyadic(Table<const float>, const Stopping&, bool, int);
template TreeColumns grow_dyadic(Table<const double>, const Stopping&, bool, int);

}  // namespace certree
