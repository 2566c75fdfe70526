/* Honest: what goes past the system's cache (O_DIRECT) still lies in the disk's, and is flushed. */
#include "log_store.h"

static const struct behaviour behaviour = {.name = "honest-writes-past-the-cache", .direct = true};
