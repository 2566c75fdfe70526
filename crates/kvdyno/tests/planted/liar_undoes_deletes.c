/* Lies: it syncs each delete, and passes over all of them when it reads its log. */
#include "log_store.h"

static const struct behaviour behaviour = {.name = "liar-undoes-deletes", .recovers_deleted = true};
