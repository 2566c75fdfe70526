/* Lies: nine of ten writes are answered and not synced. */
#include "log_store.h"

static const struct behaviour behaviour = {.name = "liar-syncs-every-tenth-write", .sync_every = 10};
