// Stopping a call of the core in the middle of its loops.
//
// Loops pay for their steps, and after every kStepsBetweenChecks of them a thread looks whether its
// call is to stop; the loop then ends by an exception. Steps are counted, not seconds: it is known
// how often a loop looks, whatever the machine.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <iterator>
#include <thread>

#include "arrays.hpp"

namespace certree {

// What a look throws where the call is to stop.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// About a tenth of a millisecond to a millisecond.
inline constexpr std::int64_t kStepsBetweenChecks = std::int64_t{1} << 17;

// How often the threads of a call look, and which of the looks stops it.
inline constexpr std::int64_t kNeverStops = std::numeric_limits<std::int64_t>::max();
struct Looking {
  std::int64_t steps_between = kStepsBetweenChecks;
  std::int64_t stops_at = kNeverStops;
};

// A call of the core, which has threads of its own at times.
class Call {
 public:
  static constexpr std::chrono::milliseconds kBetweenQuestions{50};

  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Throws if the call is to stop.
  void look();
  // For the caller that waits for its threads: asks without a look.
  bool is_to_stop();
  std::int64_t looks() const { return looks_; }
  std::int64_t steps_between_looks() const { return looking_.steps_between; }

 protected:
  explicit Call(Looking looking) : looking_(looking) {}
  // Whether anybody wants the call to stop. Only the thread that made the call asks.
  virtual bool should_stop() = 0;

 private:
  using Clock = std::chrono::steady_clock;

  const Looking looking_;
  const std::thread::id caller_ = std::this_thread::get_id();
  Clock::time_point next_question_ = Clock::now() + kBetweenQuestions;
  std::atomic<bool> stops_ = false;
  std::atomic<std::int64_t> looks_ = 0;
};

// What a thread works for, and how many steps it may take before it looks.
struct Work {
  Call* call;
  std::int64_t steps_left;
};
inline constinit thread_local Work thread_work{nullptr, kStepsBetweenChecks};

// While it lives, the thread works for a call.
class CallScope {
 public:
  explicit CallScope(Call* call)
      : before_(std::exchange(
            thread_work, Work{call, call ? call->steps_between_looks() : kStepsBetweenChecks})) {}
  ~CallScope() { thread_work = before_; }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  Work before_;
};

void look();

// Pays for steps.
inline void count_steps(std::integral auto steps) {
  if ((thread_work.steps_left -= static_cast<std::int64_t>(steps)) < 0) look();
}

// The same out of the way of a loop, which pays for many steps at once.
void count_steps_out_of_line(std::int64_t steps);
inline constexpr std::int64_t kStepsAtOnce = kStepsBetweenChecks / 4;

// How many of n turns of a loop are paid for at a time, where a turn takes so many steps.
inline std::int64_t turns_at_once(std::int64_t n, std::int64_t steps) {
  if (steps <= kStepsAtOnce && n * steps <= kStepsAtOnce) [[likely]]
    return n;
  return std::max<std::int64_t>(kStepsAtOnce / steps, 1);
}

// For steps that nobody knows beforehand, such as those of a search: counted here, paid in bulk.
class StepCounter {
 public:
  void add(std::int64_t steps = 1) {
    if ((steps_ += steps) >= kStepsAtOnce) [[unlikely]]
      pay();
  }
  void pay() { count_steps_out_of_line(std::exchange(steps_, 0)); }

 private:
  std::int64_t steps_ = 0;
};

// The numbers 0, ..., n - 1 of a loop whose turns take so many steps; down: in reverse.
template <bool down>
class Turns {
 public:
  Turns(std::integral auto n, std::integral auto steps)
      : n_(static_cast<std::size_t>(n)), steps_(static_cast<std::int64_t>(steps)) {}

  class Iterator {
   public:
    explicit Iterator(const Turns& turns)
        : left_(static_cast<std::int64_t>(turns.n_)),
          steps_(turns.steps_),
          at_once_(turns_at_once(left_, steps_)),
          at_(down ? turns.n_ - 1 : 0) {
      pay();
    }
    std::size_t operator*() const { return at_; }
    void operator++() {
      at_ += down ? std::size_t(-1) : 1;
      --left_;
      if (--paid_ == 0) [[unlikely]]
        pay();
    }
    bool operator!=(std::default_sentinel_t) const { return left_ != 0; }

   private:
    void pay() {
      paid_ = std::min(left_, at_once_);
      if (paid_ > 0) count_steps_out_of_line(paid_ * steps_);
    }

    std::int64_t left_, steps_, at_once_, paid_ = 0;
    std::size_t at_;
  };

  Iterator begin() const { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::size_t n_;
  std::int64_t steps_;
};

inline auto indices(std::integral auto n, std::integral auto steps) {
  return Turns<false>(n, steps);
}
inline auto indices(std::integral auto n) { return Turns<false>(n, 1); }
inline auto indices_down(std::integral auto n, std::integral auto steps) {
  return Turns<true>(n, steps);
}
inline auto indices_down(std::integral auto n) { return Turns<true>(n, 1); }

// The stretches of a column, one after the other: inner loops over them stay plain. Growers have
// millions of cells with a few rows; who hands over such short columns pays.
template <class T>
class Stretches {
 public:
  explicit Stretches(std::span<T> column) : column_(column) {}

  class Iterator {
   public:
    explicit Iterator(std::span<T> rest) : rest_(rest) { pay(); }
    std::span<T> operator*() const { return rest_.first(paid_); }
    void operator++() {
      rest_ = rest_.subspan(paid_);
      pay();
    }
    bool operator!=(std::default_sentinel_t) const { return !rest_.empty(); }

   private:
    static constexpr std::size_t kShort = 32;

    void pay() {
      paid_ = std::min(rest_.size(), static_cast<std::size_t>(kStepsAtOnce));
      if (paid_ > kShort) [[unlikely]]
        count_steps_out_of_line(static_cast<std::int64_t>(paid_));
    }

    std::span<T> rest_;
    std::size_t paid_ = 0;
  };

  Iterator begin() const { return Iterator(column_); }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::span<T> column_;
};

template <class T>
auto chunks(std::span<T> column) {
  return Stretches<T>(column);
}
template <class T>
auto chunks(T* first, T* last) {
  return Stretches<T>(std::span<T>(first, static_cast<std::size_t>(last - first)));
}

// Calls algorithm(f), which asks f of n items or so; among many, f looks now and then.
template <class F, class Algorithm>
auto with_interrupt_checks(std::integral auto n, const F& f, const Algorithm& algorithm) {
  count_steps(n);
  if (std::cmp_less(n, kStepsBetweenChecks)) return algorithm(f);
  StepCounter counter;
  return algorithm([&](const auto&... items) {
    counter.add();
    return f(items...);
  });
}

template <class T>
void fill(std::span<T> column, T value) {
  for (const auto part : chunks(column)) std::ranges::fill(part, value);
}

template <class T>
void append(const std::vector<T>& from, std::vector<T>& to) {
  for (const auto part : chunks(std::span(from))) to.insert(to.end(), part.begin(), part.end());
}

// Adds so much to what is appended.
template <class T>
void append_shifted(const std::vector<T>& from, T shift, std::vector<T>& to) {
  for (const auto part : chunks(std::span(from)))
    for (const T one : part) to.push_back(one + shift);
}

template <class T, class Holds>
bool all_of(std::span<T> column, const Holds& holds) {
  for (const auto part : chunks(column))
    if (!std::ranges::all_of(part, holds)) return false;
  return true;
}

}  // namespace certree
