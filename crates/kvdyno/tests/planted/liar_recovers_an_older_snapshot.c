/* Lies: it syncs each write, and begins again with the snapshot before the last one. */
#include "log_store.h"

static const struct behaviour behaviour = {.name = "liar-recovers-an-older-snapshot", .snapshot_every = 1000, .recovers_older = true};
