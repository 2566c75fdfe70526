/* Lies: after a sync that failed it syncs again, and takes the success of that for its own. But the system had thrown
 * away what it could not write. */
#include "log_store.h"

static const struct behaviour behaviour = {.name = "liar-syncs-again-after-an-error", .on_error = RETRY};
