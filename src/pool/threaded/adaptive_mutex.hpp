// A mutex that many threads hold for a few dozen nanoseconds each.
#pragma once

#include <pthread.h>

namespace holdfast::pool {

// A thread that finds it taken spins for a moment before it sleeps: the holder is nearly always
// done before a thread could be put to sleep and woken again. Where the C library has no such mutex
// it is an ordinary one. For std::lock_guard and std::unique_lock.
class AdaptiveMutex {
public:
    AdaptiveMutex() = default;
    AdaptiveMutex(const AdaptiveMutex&) = delete;
    AdaptiveMutex& operator=(const AdaptiveMutex&) = delete;
    ~AdaptiveMutex() { ::pthread_mutex_destroy(&mutex_); }

    // Neither can fail: it is not recursive, not robust, has no priority, and no error checks.
    void lock() noexcept { static_cast<void>(::pthread_mutex_lock(&mutex_)); }
    void unlock() noexcept { static_cast<void>(::pthread_mutex_unlock(&mutex_)); }

private:
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
    pthread_mutex_t mutex_ = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
#else
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
#endif
};

}  // namespace holdfast::pool
