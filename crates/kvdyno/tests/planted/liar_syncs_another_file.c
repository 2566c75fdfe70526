/* Lies: what it syncs at each write is a file that holds nothing. */
#include "log_store.h"

static const struct behaviour behaviour = {.name = "liar-syncs-another-file", .syncs_another_file = true};
