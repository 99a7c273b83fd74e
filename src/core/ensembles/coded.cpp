#include "ensembles/coded.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "count_below.hpp"
#include "walk.hpp"

namespace certree {
namespace {

// The code of missing values; numbers have smaller ones.
constexpr std::uint8_t kMissing = kMissingCode;
static_assert(kLanes == kValuesAtOnce);
constexpr std::size_t kMostThresholds = kMissing - 1;
constexpr std::int32_t kMostCategories = 1024;
// The bit of missing values in the last plane of a feature with sets; all other bits of its planes
// stand for categories.
constexpr std::uint8_t kMissingBit = 1 << 7;
// Time to code one feature of a row, in steps of a walk from a node to its child.
constexpr std::int64_t kStepsOfCode = 2;

std::size_t end_of(const TreesView& trees, std::size_t t) {
  const bool is_last = t + 1 == trees.root.size();
  return is_last ? trees.packed.size() : static_cast<std::size_t>(trees.root[t + 1]);
}

bool is_leaf(const TreesView& trees, std::size_t v) {
  return std::cmp_equal(trees.packed[v].left, v);
}

bool has_set(const TreesView& trees, std::size_t v) { return trees.packed[v].left < 0; }

std::size_t left_of(const TreesView& trees, std::size_t v) {
  const std::int32_t left = trees.packed[v].left;
  return static_cast<std::size_t>(left < 0 ? ~left : left);
}

std::uint32_t feature_of(const TreesView& trees, std::size_t v) {
  return trees.packed[v].feature_and_missing / 2;
}

bool missing_left(const TreesView& trees, std::size_t v) {
  return trees.packed[v].feature_and_missing % 2;
}

bool unseen_left(const TreesView& trees, std::size_t v) {
  return (trees.packed[v].threshold_or_set & kUnseenLeftInMask) != 0;
}

double threshold_of(const TreesView& trees, std::size_t v) {
  return std::bit_cast<double>(trees.packed[v].threshold_or_set);
}

std::span<const std::int32_t> set_of(const TreesView& trees, std::size_t v) {
  const auto begin = static_cast<std::size_t>(trees.nodes.category_start[v]);
  const auto end = static_cast<std::size_t>(trees.nodes.category_start[v + 1]);
  return trees.nodes.categories.subspan(begin, end - begin);
}

// What nodes ask of features: pairs of a feature and a threshold, or the last category of a set.
template <class T>
using Asked = std::vector<std::pair<std::uint32_t, T>>;

// Calls take(feature, what is asked of it, ascending) until it returns false; returns whether it
// never did.
template <class T, class Take>
bool by_feature(Asked<T>& asked, const Take& take) {
  with_interrupt_checks(asked.size(), std::less<>{},
                        [&](const auto& less) { std::sort(asked.begin(), asked.end(), less); });
  std::vector<T> own;
  for (const std::size_t i : indices(asked.size())) {
    if (own.empty() || own.back() != asked[i].second) own.push_back(asked[i].second);
    if (i + 1 < asked.size() && asked[i + 1].first == asked[i].first) continue;
    if (!take(asked[i].first, own)) return false;
    own.clear();
  }
  return true;
}

// Features in the order of their numbers, those with thresholds first; none if one has too many of
// these.
std::optional<std::vector<CodedFeature>> coded_features(const TreesView& trees, std::size_t begin,
                                                        std::size_t end) {
  Asked<double> thresholds;
  Asked<std::int32_t> last_of_sets;
  for (const std::size_t n : indices(end - begin)) {
    const std::size_t v = begin + n;
    if (is_leaf(trees, v)) continue;
    if (has_set(trees, v)) {
      last_of_sets.emplace_back(feature_of(trees, v), set_of(trees, v).back());
    } else {
      thresholds.emplace_back(feature_of(trees, v), threshold_of(trees, v));
    }
  }
  std::vector<CodedFeature> features;
  const auto add = [&](std::uint32_t feature, std::uint32_t n_planes, std::vector<double> own) {
    const std::uint32_t plane =
        features.empty() ? 0 : features.back().plane + features.back().n_planes;
    features.push_back({feature, plane, n_planes, std::move(own)});
  };
  const bool fits =
      by_feature(thresholds,
                 [&](std::uint32_t feature, std::vector<double> own) {
                   if (own.size() > kMostThresholds) return false;
                   pad_thresholds(own);
                   add(feature, 1, std::move(own));
                   return true;
                 }) &&
      by_feature(last_of_sets, [&](std::uint32_t feature, const std::vector<std::int32_t>& own) {
        add(feature, (static_cast<std::uint32_t>(own.back()) + 1) / 8 + 1, {});
        return true;
      });
  if (!fits) return {};
  return features;
}

void mark_categories(const double* x, std::uint32_t n_planes, std::uint8_t* code) {
  std::fill_n(code, n_planes * kLanes, std::uint8_t{0});
  std::uint8_t* const last_plane = code + (n_planes - 1) * kLanes;
  for (std::int64_t r = 0; r < kLanes; ++r) {
    if (std::isnan(x[r])) last_plane[r] = kMissingBit;
    if (!(x[r] >= 0.0 && x[r] < 8.0 * n_planes - 1.0)) continue;
    const auto category = static_cast<std::int64_t>(x[r]);
    if (static_cast<double>(category) == x[r])
      code[category / 8 * kLanes + r] = static_cast<std::uint8_t>(1 << category % 8);
  }
}

// A byte for each of 32 rows, in one register of most processors. Operations are byte by byte;
// comparisons give 255 where they hold and else 0.
#if defined(__GNUC__)
using Bytes [[gnu::vector_size(32)]] = std::uint8_t;
#else
struct Bytes {
  std::array<std::uint8_t, 32> byte;

  // Returns the bytes f(one, other).
  template <class F>
  static Bytes combine(const Bytes& one, const Bytes& other, const F& f) {
    Bytes result;
    for (std::size_t i = 0; i < result.byte.size(); ++i)
      result.byte[i] = static_cast<std::uint8_t>(f(one.byte[i], other.byte[i]));
    return result;
  }
  static Bytes fill(std::uint8_t x) {
    Bytes result;
    result.byte.fill(x);
    return result;
  }
  Bytes operator-(std::uint8_t x) const { return combine(*this, fill(x), std::minus<>{}); }
  Bytes operator&(const Bytes& x) const { return combine(*this, x, std::bit_and<>{}); }
  Bytes operator&(std::uint8_t x) const { return *this & fill(x); }
  Bytes operator~() const { return combine(*this, fill(255), std::bit_xor<>{}); }
  Bytes operator<=(std::uint8_t x) const {
    return combine(*this, fill(x), [](int a, int b) { return a <= b ? 255 : 0; });
  }
  Bytes operator==(std::uint8_t x) const {
    return combine(*this, fill(x), [](int a, int b) { return a == b ? 255 : 0; });
  }
  Bytes& operator|=(const Bytes& x) { return *this = combine(*this, x, std::bit_or<>{}); }
  Bytes& operator+=(const Bytes& x) { return *this = combine(*this, x, std::plus<>{}); }
};
#endif
constexpr std::size_t kBytes = sizeof(Bytes);

// A byte for each of 128 rows, few enough to stay in registers for a whole tree. Four members,
// because compilers keep an array in memory.
struct RowBytes {
  Bytes a{}, b{}, c{}, d{};

  CERTREE_INLINE void load(const std::uint8_t* from) {
    std::memcpy(&a, from, kBytes);
    std::memcpy(&b, from + kBytes, kBytes);
    std::memcpy(&c, from + 2 * kBytes, kBytes);
    std::memcpy(&d, from + 3 * kBytes, kBytes);
  }
  CERTREE_INLINE void store(std::uint8_t* to) const {
    std::memcpy(to, &a, kBytes);
    std::memcpy(to + kBytes, &b, kBytes);
    std::memcpy(to + 2 * kBytes, &c, kBytes);
    std::memcpy(to + 3 * kBytes, &d, kBytes);
  }
  CERTREE_INLINE void add_masked(const RowBytes& other, std::uint8_t bits) {
    a |= other.a & bits;
    b |= other.b & bits;
    c |= other.c & bits;
    d |= other.d & bits;
  }
};

// Moves rows to the right child of the split's node if they are in this node and their code is not
// among those that go left. position: of the rows.
CERTREE_INLINE void move_right(const CodedSplit& split, const Bytes& code, Bytes& position) {
  const auto goes_left = (Bytes)(code - split.low <= split.more);
  const auto is_here = (Bytes)(position == split.first);
  position += ~goes_left & is_here & split.n_left;
}

// Writes to leaf_of_row, (kLanes,), the number of each row's leaf, from left to right. first_split
// and first_part: those of the tree; codes: of the rows.
CERTREE_SIMD_CLONES void find_leaf_numbers(const CodedSplit* first_split, const SetPart* first_part,
                                           const std::uint8_t* codes,
                                           std::uint8_t* leaf_of_row) noexcept {
  for (std::size_t row = 0; row < kLanes; row += sizeof(RowBytes)) {
    const SetPart* part = first_part;
    RowBytes position;
    for (const CodedSplit* split = first_split; split->n_left != 0; ++split) {
      RowBytes code;
      if (split->has_set) {
        for (; part->bits != 0; ++part) {
          RowBytes plane;
          plane.load(codes + part->plane * kLanes + row);
          code.add_masked(plane, part->bits);
        }
        ++part;
      } else {
        code.load(codes + split->plane * kLanes + row);
      }
      move_right(*split, code.a, position.a);
      move_right(*split, code.b, position.b);
      move_right(*split, code.c, position.c);
      move_right(*split, code.d, position.d);
    }
    position.store(leaf_of_row + row);
  }
}

}  // namespace

bool CodedTrees::is_small(const TreesView& trees, std::size_t t) {
  const auto begin = static_cast<std::size_t>(trees.root[t]);
  const std::size_t end = end_of(trees, t);
  if (end - begin >= 2 * kMostLeaves) return false;
  count_steps(end - begin);
  for (std::size_t v = begin; v < end; ++v)
    if (has_set(trees, v) && set_of(trees, v).back() >= kMostCategories) return false;
  return true;
}

std::optional<CodedTrees> CodedTrees::of(const TreesView& trees, std::size_t first,
                                         std::size_t last) {
  const auto begin = static_cast<std::size_t>(trees.root[first]);
  auto features = coded_features(trees, begin, end_of(trees, last - 1));
  if (!features) return {};
  CodedTrees made;
  made.first_ = first;
  made.features_ = std::move(*features);
  if (!made.features_.empty())
    made.n_planes_ = made.features_.back().plane + made.features_.back().n_planes;
  for (std::size_t t = first; t < last; ++t)
    made.add_tree(trees, static_cast<std::size_t>(trees.root[t]), end_of(trees, t));
  return made;
}

void CodedTrees::add_tree(const TreesView& trees, std::size_t begin, std::size_t end) {
  trees_.push_back({splits_.size(), parts_.size(), leaves_.size()});
  std::array<std::uint8_t, 2 * kMostLeaves> n_leaves, first;
  for (std::size_t v = end; v-- > begin;) {
    const std::size_t left = left_of(trees, v) - begin;
    n_leaves[v - begin] = is_leaf(trees, v)
                              ? std::uint8_t{1}
                              : static_cast<std::uint8_t>(n_leaves[left] + n_leaves[left + 1]);
  }
  count_steps(end - begin);
  n_steps_ += std::bit_width(n_leaves[0]);
  leaves_.resize(leaves_.size() + n_leaves[0]);
  first[0] = 0;
  for (std::size_t v = begin; v < end; ++v) {
    const std::uint8_t own = first[v - begin];
    if (is_leaf(trees, v)) {
      leaves_[trees_.back().leaf + own] = static_cast<std::int32_t>(v);
      continue;
    }
    const std::size_t left = left_of(trees, v) - begin;
    first[left] = own;
    first[left + 1] = static_cast<std::uint8_t>(own + n_leaves[left]);
    add_split(trees, v, own, n_leaves[left]);
  }
  splits_.push_back({});
}

void CodedTrees::add_split(const TreesView& trees, std::size_t v, std::uint8_t first,
                           std::uint8_t n_left) {
  const CodedFeature& own = feature(feature_of(trees, v), has_set(trees, v));
  const bool missing = missing_left(trees, v);
  if (!has_set(trees, v)) {
    const auto below = static_cast<std::uint8_t>(
        std::ranges::lower_bound(own.thresholds, threshold_of(trees, v)) - own.thresholds.begin());
    // Before the smallest code stands that of missing values.
    splits_.push_back({own.plane, 0, missing ? kMissing : std::uint8_t{0},
                       static_cast<std::uint8_t>(below + missing), first, n_left});
    return;
  }
  const std::size_t before = parts_.size();
  for (const std::int32_t category : set_of(trees, v)) {
    const auto plane = own.plane + static_cast<std::uint32_t>(category) / 8;
    if (parts_.size() == before || parts_.back().plane != plane) parts_.push_back({plane, 0});
    parts_.back().bits |= static_cast<std::uint8_t>(1 << category % 8);
  }
  const bool is_unseen_left = unseen_left(trees, v);
  if (missing != is_unseen_left) {
    const std::uint32_t last_plane = own.plane + own.n_planes - 1;
    if (parts_.back().plane != last_plane) parts_.push_back({last_plane, 0});
    parts_.back().bits |= kMissingBit;
  }
  parts_.push_back({});
  count_steps(parts_.size() - before);
  if (is_unseen_left)
    splits_.push_back({0, 1, 0, 0, first, n_left});
  else
    splits_.push_back({0, 1, 1, 254, first, n_left});
}

const CodedFeature& CodedTrees::feature(std::uint32_t number, bool has_sets) const {
  const auto key = [](const CodedFeature& one) {
    return std::pair(one.thresholds.empty(), one.feature);
  };
  return *std::ranges::lower_bound(features_, std::pair(has_sets, number), {}, key);
}

bool CodedTrees::pays_off() const { return n_steps_ > kStepsOfCode * std::ssize(features_); }

template <class Real>
void CodedTrees::code(const Table<const Real>& X, std::int64_t begin, std::int64_t width,
                      std::uint8_t* codes, StepCounter& counter) const {
  std::array<double, kLanes> x{};
  for (const CodedFeature& one : features_) {
    for (std::int64_t r = 0; r < width; ++r)
      x[static_cast<std::size_t>(r)] = static_cast<double>(X.row(begin + r)[one.feature]);
    std::uint8_t* const own = codes + one.plane * kLanes;
    if (one.thresholds.empty())
      mark_categories(x.data(), one.n_planes, own);
    else
      bin_values(one.thresholds.data(), one.thresholds.size(), x.data(), own);
    counter.add(one.n_planes * kLanes);
  }
}

CodedLeaves CodedTrees::find_leaves(std::size_t t, const std::uint8_t* codes,
                                    std::span<std::uint8_t> leaf_of_row,
                                    StepCounter& counter) const {
  const std::size_t tree = t - first_;
  const Begin& begin = trees_[tree];
  const std::size_t end = tree + 1 < trees_.size() ? trees_[tree + 1].leaf : leaves_.size();
  find_leaf_numbers(splits_.data() + begin.split, parts_.data() + begin.part, codes,
                    leaf_of_row.data());
  counter.add(kLanes);
  return {std::span(leaves_).subspan(begin.leaf, end - begin.leaf), leaf_of_row};
}

template void CodedTrees::code(const Table<const float>&, std::int64_t, std::int64_t, std::uint8_t*,
                               StepCounter&) const;
template void CodedTrees::code(const Table<const double>&, std::int64_t, std::int64_t,
                               std::uint8_t*, StepCounter&) const;

}  // namespace certree
