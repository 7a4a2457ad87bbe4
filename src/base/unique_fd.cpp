#include <holdfast/base/unique_fd.hpp>

#include <unistd.h>

namespace holdfast {

UniqueFd::~UniqueFd() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

}  // namespace holdfast
