// holdfast dsql doctor: why a cluster cannot be reached, on one screen.
#pragma once

#include "command.hpp"

namespace holdfast::app {

// Checks the database of --db step by step; what follows a failed step is not tried. Ends with the
// exit code of the failure.
int dsql_doctor(const Context& context);

}  // namespace holdfast::app
