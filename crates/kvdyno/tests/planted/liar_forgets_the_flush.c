/* Lies: it writes past the system's cache (O_DIRECT), and takes that for a sync; the disk has a cache, too. */
#include "log_store.h"

static const struct behaviour behaviour = {.name = "liar-forgets-the-flush", .direct = true, .forgets_flush = true};
