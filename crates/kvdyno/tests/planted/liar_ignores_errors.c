/* Lies: a sync that fails is taken for one that did not. */
#include "log_store.h"

static const struct behaviour behaviour = {.name = "liar-ignores-errors", .on_error = IGNORE};
