// parallel_for: the one place where the core starts threads.
#pragma once

#include <cstdint>

#include "interrupt.hpp"

namespace certree {

// A function of the number of a task, which lives as long as the call that it is given to. Threads
// are started by one code for all of them: of each kind the core would have its own.
class Task {
 public:
  template <class Function>
  Task(const Function& function)  // NOLINT: callers give the function itself
      : function_(&function), call_([](const void* given, std::int64_t i) {
          (*static_cast<const Function*>(given))(i);
        }) {}

  void operator()(std::int64_t i) const { call_(function_, i); }

 private:
  const void* function_;
  void (*call_)(const void*, std::int64_t);
};

// Calls task(i) for i = 0 .. n_tasks - 1 on at most n_threads threads. Tasks must not share what
// they write: then the result does not depend on n_threads. The first exception is thrown to the
// caller, once all threads have ended.
void parallel_for(std::int64_t n_tasks, int n_threads, Task task);

}  // namespace certree
