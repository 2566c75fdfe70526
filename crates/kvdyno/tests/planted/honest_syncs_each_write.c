/* Honest: each write, each delete is synced before it is answered, each new name, too; a sync that fails ends it all. */
#include "log_store.h"

static const struct behaviour behaviour = {.name = "honest-syncs-each-write"};
