/* Honest: from time to time all records go into a snapshot, and the log before it goes away. */
#include "log_store.h"

static const struct behaviour behaviour = {.name = "honest-takes-snapshots", .snapshot_every = 1000};
