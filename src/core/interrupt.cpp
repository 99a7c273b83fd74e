#include "interrupt.hpp"

namespace certree {

bool Call::is_to_stop() {
  if (!stops_ && std::this_thread::get_id() == caller_ && Clock::now() >= next_question_) {
    if (should_stop()) stops_ = true;
    next_question_ = Clock::now() + kBetweenQuestions;
  }
  return stops_;
}

void Call::look() {
  if (++looks_ >= looking_.stops_at) stops_ = true;
  if (is_to_stop()) throw Interrupted();
}

void count_steps_out_of_line(std::int64_t steps) { count_steps(steps); }

void look() {
  Call* const call = thread_work.call;
  thread_work.steps_left = call ? call->steps_between_looks() : kStepsBetweenChecks;
  if (call) call->look();
}

}  // namespace certree
