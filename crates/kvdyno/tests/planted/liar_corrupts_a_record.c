/* Lies: when it reads its log, it turns one bit in the value of one in 10,000 entries, whose checksum was right. */
#include "log_store.h"

static const struct behaviour behaviour = {.name = "liar-corrupts-a-record", .corrupts_every = 10000};
