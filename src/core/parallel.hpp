// parallel_for: the only place where the core starts threads.
#pragma once

#include <cstdint>

#include "interrupt.hpp"

namespace certree {

// A reference to a function of the task's number, without ownership: the function must outlive the
// call of parallel_for. Unlike a template parameter it lets all loops share one compiled
// parallel_for, and unlike std::function it allocates nothing.
class Task {
 public:
  template <class Function>
  Task(const Function& function)  // NOLINT: implicit, as callers pass a lambda
      : function_(&function),
        call_([](const void* task, std::int64_t i) { (*static_cast<const Function*>(task))(i); }) {}

  void operator()(std::int64_t i) const { call_(function_, i); }

 private:
  const void* function_;
  void (*call_)(const void*, std::int64_t);
};

// Calls task(i) for i = 0, ..., n_tasks - 1 on at most n_threads threads, the caller's included.
// Tasks must write to separate memory; then the result does not depend on n_threads. After an
// exception no further task starts; once all threads have ended, the first one is thrown again.
void parallel_for(std::int64_t n_tasks, int n_threads, Task task);

}  // namespace certree
