#include <holdfast/pool/breaker.hpp>

#include <algorithm>

namespace holdfast::pool {

bool Breaker::may_ask(Steady now) {
    if (!open()) {
        return true;
    }
    if (now < probe_at_) {
        return false;
    }
    probe_at_ = now + limits_.breaker_probe;
    return true;
}

bool Breaker::answered() {
    const bool was_open = open();
    failures_ = 0;
    return was_open;
}

bool Breaker::failed(Steady now) {
    const bool was_open = open();
    failures_ = std::min(failures_ + 1, limits_.breaker_failures);
    if (open() && !was_open) {
        probe_at_ = now + limits_.breaker_probe;
    }
    return open() && !was_open;
}

void SlowDown::refused(Steady now) {
    if (part(now) < 1 && now - refused_ < limits_.slow_down_once) {
        return;
    }
    part_ = std::max(part_ * limits_.slow_down, limits_.slowest);
    refused_ = now;
    since_ = now;
}

double SlowDown::part(Steady now) {
    while (part_ < 1 && now - since_ >= limits_.speed_up_after) {
        part_ = std::min(1.0, part_ + limits_.speed_up);
        since_ += limits_.speed_up_after;
    }
    return part_;
}

}  // namespace holdfast::pool
