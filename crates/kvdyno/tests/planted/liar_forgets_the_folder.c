/* Lies: a new segment gets its name, and the folder that holds the name is not synced. */
#include "log_store.h"

static const struct behaviour behaviour = {.name = "liar-forgets-the-folder", .forgets_folder = true};
