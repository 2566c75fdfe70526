/* Honest: when the disk fails, the process ends. */
#include "log_store.h"

static const struct behaviour behaviour = {.name = "honest-ends-at-an-error", .on_error = END};
