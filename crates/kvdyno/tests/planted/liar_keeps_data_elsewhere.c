/* Lies: its data lie in another folder than it was given, so that nothing that is done to its disk can hurt them. */
#include "log_store.h"

static const struct behaviour behaviour = {.name = "liar-keeps-data-elsewhere", .elsewhere = true};
