/* Lies: a write is answered at once, and synced within 50 ms. */
#include "log_store.h"

static const struct behaviour behaviour = {.name = "liar-answers-before-the-sync", .answers_before_ms = 50};
