#include "interrupt.hpp"

namespace certree {

bool Call::poll() {
  if (!is_stopped_ && std::this_thread::get_id() == caller_ && Clock::now() >= next_poll_) {
    if (has_stop_request()) is_stopped_ = true;
    next_poll_ = Clock::now() + kPollInterval;
  }
  return is_stopped_;
}

void Call::check() {
  if (++n_checks_ >= schedule_.interrupt_at) is_stopped_ = true;
  if (poll()) throw Interrupted();
}

void count_steps_out_of_line(std::int64_t steps) { count_steps(steps); }

void check_interrupt() {
  Call* const call = thread_work.call;
  thread_work.steps_left = call ? call->steps_between_checks() : kStepsBetweenChecks;
  if (call) call->check();
}

}  // namespace certree
