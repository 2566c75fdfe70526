/* A plug-in that breaks the contract of kvdyno.h in the way that the option `config` names. It keeps
 * nothing. ABI, NO_GET and NO_SCAN change what it exports. */
#include "kvdyno.h"

#include <stdio.h>
#include <string.h>

#ifndef ABI
#define ABI KVDYNO_ABI
#endif

static char flaw[32];
static int something;

static int is(const char *name) { return strcmp(flaw, name) == 0; }

uint32_t kvdyno_abi(void) { return ABI; }

int32_t kvdyno_open(const kvdyno_settings *settings, kvdyno_store **store,
                    kvdyno_profile *profile, kvdyno_error *error) {
    snprintf(flaw, sizeof flaw, "%s", settings->config);
    if (is("open-fails")) {
        error->trouble = KVDYNO_FULL;
        snprintf(error->message, sizeof error->message, "no\nroom");
        return KVDYNO_FAILED;
    }
    snprintf(profile->name, sizeof profile->name, "%s", is("no-name") ? "" : "broken");
    profile->operations = is("operations") ? 6 : KVDYNO_SCAN;
    profile->durability = is("durability") ? 9 : is("weak") ? 0 : settings->durability;
    profile->consistency = is("consistency") ? -1 : KVDYNO_LINEARIZABLE;
    *store = is("open-null") ? NULL : (kvdyno_store *)&something;
    return is("open-code") ? 42 : KVDYNO_OK;
}

void kvdyno_close(kvdyno_store *store) { (void)store; }

int32_t kvdyno_connect(kvdyno_store *store, kvdyno_client **client, kvdyno_error *error) {
    (void)error;
    *client = is("connect-null") ? NULL : (kvdyno_client *)store;
    return KVDYNO_OK;
}

void kvdyno_disconnect(kvdyno_client *client) { (void)client; }

static int32_t trouble(kvdyno_error *error, int32_t answer) {
    error->trouble = is("trouble") ? 99 : KVDYNO_TIMEOUT;
    if (is("trouble")) {
        memset(error->message, 'x', sizeof error->message); /* no zero byte */
    }
    return answer;
}

#ifndef NO_GET
int32_t kvdyno_get(kvdyno_client *client, kvdyno_bytes key, kvdyno_buffer *value,
                   kvdyno_error *error) {
    (void)client, (void)key;
    value->length = is("length") ? value->room + 1 : is("huge") ? SIZE_MAX : 1;
    if (is("overrun")) {
        memset(value->data, 0, value->room + 8);
    }
    if (is("more-room") || is("huge")) {
        return KVDYNO_MORE_ROOM;
    }
    if (is("ever-more")) {
        value->length = value->room + 1;
        return KVDYNO_MORE_ROOM;
    }
    if (is("trouble") || is("silent")) {
        return trouble(error, KVDYNO_FAILED);
    }
    return is("code") ? 42 : is("unsure") ? KVDYNO_INDETERMINATE : KVDYNO_OK;
}
#endif

static int32_t write_with(kvdyno_error *error) {
    if (is("unsure") || is("silent")) {
        return trouble(error, is("unsure") ? KVDYNO_INDETERMINATE : KVDYNO_FAILED);
    }
    return is("code") ? 42 : is("absent") ? KVDYNO_ABSENT : KVDYNO_OK;
}

int32_t kvdyno_put(kvdyno_client *client, kvdyno_bytes key, kvdyno_bytes value,
                   kvdyno_error *error) {
    (void)client, (void)key, (void)value;
    return write_with(error);
}

int32_t kvdyno_delete(kvdyno_client *client, kvdyno_bytes key, kvdyno_error *error) {
    (void)client, (void)key;
    return write_with(error);
}

#ifndef NO_SCAN
int32_t kvdyno_scan(kvdyno_client *client, kvdyno_bytes from, size_t count, kvdyno_buffer *rows,
                    kvdyno_error *error) {
    (void)client, (void)from, (void)error;
    /* One row more than asked for, each with an empty key and value; or one whose value is said to
     * be longer than all that was written. */
    uint32_t lengths[2] = {0, is("row-length") ? 1000 : 0};
    size_t wanted = is("row-length") ? 1 : count + 1;
    for (rows->length = 0; wanted > 0; wanted--) {
        memcpy(rows->data + rows->length, lengths, sizeof lengths);
        rows->length += sizeof lengths;
    }
    if (is("half-row")) {
        rows->length = 5;
    }
    return is("scan-absent") ? KVDYNO_ABSENT : KVDYNO_OK;
}
#endif
