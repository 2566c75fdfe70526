/* kvdyno.h: put an engine of your own on the dynamometer.
 *
 * Write the nine functions at the end, build them as a shared library, and run
 *
 *     kvdyno run --store 'plugin:./mine.so'
 *
 * sqlite.c beside this file is a whole plug-in; docs/stores/plugin.md walks through it.
 *
 * Threads: kvdyno_open and kvdyno_close are called once, from one thread. kvdyno_connect may be
 * called from several threads at once. A client is used by one thread at a time; each client of
 * the load is a thread of its own, so nothing need be asynchronous: a call returns when it is done.
 *
 * Memory: what kvdyno hands in is valid during the call only. kvdyno never frees or reads memory of
 * the plug-in: values are copied into a buffer that kvdyno owns.
 *
 * kvdyno measures around each call, so do what the engine's users would do, and nothing else.
 */
#ifndef KVDYNO_H
#define KVDYNO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface; kvdyno refuses plug-ins of another. */
#define KVDYNO_ABI 1

/* What a call answers. Every verdict of kvdyno rests on telling these apart:
 * FAILED means surely not applied, now or later. Whenever that is not known (a timeout, an error of a
 * commit, an error after the write was handed over), answer INDETERMINATE. */
enum {
    KVDYNO_OK = 0,            /* done; delete: there was a record */
    KVDYNO_ABSENT = 1,        /* get, delete: there is no such record */
    KVDYNO_MORE_ROOM = 2,     /* get, scan: the buffer is too small; set `length` to what is needed */
    KVDYNO_FAILED = 3,        /* surely not applied; fill in the error */
    KVDYNO_INDETERMINATE = 4  /* put, delete: perhaps applied; fill in the error */
};

/* What kind of trouble it was: errors are counted by it. */
enum {
    KVDYNO_REFUSED = 0,      /* no connection could be made */
    KVDYNO_TIMEOUT = 1,      /* no answer within the time allowed */
    KVDYNO_DISCONNECTED = 2, /* the connection was lost */
    KVDYNO_OVERLOADED = 3,   /* too much to do */
    KVDYNO_UNAVAILABLE = 4,  /* cannot serve now */
    KVDYNO_PROTOCOL = 5,     /* an answer that cannot be understood */
    KVDYNO_REJECTED = 6,     /* understood and declined */
    KVDYNO_FULL = 7          /* no room left */
};

/* What an acknowledged write survives. */
enum {
    KVDYNO_SURVIVES_NOTHING = 0,
    KVDYNO_SURVIVES_PROCESS_KILL = 1, /* the end of the process by whatever signal */
    KVDYNO_SURVIVES_POWER_LOSS = 2
};

/* What a read may return. */
enum {
    KVDYNO_EVENTUAL = 0,         /* for a while perhaps an old value */
    KVDYNO_READ_AFTER_WRITE = 1, /* every write acknowledged before the read began */
    KVDYNO_LINEARIZABLE = 2      /* and reads never go back */
};

/* Operations beyond get, put and delete, as bits. */
enum {
    KVDYNO_SCAN = 1 /* kvdyno_scan is there */
};

/* The engine, and one request slot of it; yours to define. */
typedef struct kvdyno_store kvdyno_store;
typedef struct kvdyno_client kvdyno_client;

/* Any bytes, zeroes too. `data` may be NULL if `length` is 0. */
typedef struct {
    const uint8_t *data;
    size_t length;
} kvdyno_bytes;

/* Where to copy what was read: at most `room` bytes to `data`; set `length`. */
typedef struct {
    uint8_t *data;
    size_t room;
    size_t length;
} kvdyno_buffer;

/* Text for the user, ended by a zero byte: one line that says what is wrong. */
typedef struct {
    int32_t trouble; /* KVDYNO_REFUSED … KVDYNO_FULL */
    char message[252];
} kvdyno_error;

/* What the user asks for. */
typedef struct {
    const char *folder; /* an existing folder for the engine's files */
    const char *config; /* option `config` as it was written, or "" */
    int32_t durability; /* KVDYNO_SURVIVES_…: what is asked for, at least */
} kvdyno_settings;

/* What the plug-in declares. All zero before the call. */
typedef struct {
    char name[64];       /* of the engine, such as "sqlite" */
    char version[64];    /* of the engine; may be empty */
    uint32_t operations; /* KVDYNO_SCAN or 0 */
    int32_t durability;  /* KVDYNO_SURVIVES_…: what is kept with these settings */
    int32_t consistency; /* KVDYNO_EVENTUAL … KVDYNO_LINEARIZABLE */
} kvdyno_profile;

/* 1. KVDYNO_ABI. */
uint32_t kvdyno_abi(void);

/* 2. Opens the engine; fills in `profile`. KVDYNO_OK or KVDYNO_FAILED. */
int32_t kvdyno_open(const kvdyno_settings *settings, kvdyno_store **store,
                    kvdyno_profile *profile, kvdyno_error *error);

/* 3. Closes it; all clients are gone by then. */
void kvdyno_close(kvdyno_store *store);

/* 4. Makes a client. KVDYNO_OK or KVDYNO_FAILED. */
int32_t kvdyno_connect(kvdyno_store *store, kvdyno_client **client, kvdyno_error *error);

/* 5. Ends a client. */
void kvdyno_disconnect(kvdyno_client *client);

/* 6. Reads the value at `key`. KVDYNO_OK, ABSENT, MORE_ROOM (then it is called again) or FAILED. */
int32_t kvdyno_get(kvdyno_client *client, kvdyno_bytes key, kvdyno_buffer *value,
                   kvdyno_error *error);

/* 7. Writes a value, over an old one if there is one. KVDYNO_OK, FAILED or INDETERMINATE. */
int32_t kvdyno_put(kvdyno_client *client, kvdyno_bytes key, kvdyno_bytes value,
                   kvdyno_error *error);

/* 8. Deletes a record. KVDYNO_OK, ABSENT, FAILED or INDETERMINATE. An engine that cannot tell whether
 *    there was a record answers OK. */
int32_t kvdyno_delete(kvdyno_client *client, kvdyno_bytes key, kvdyno_error *error);

/* 9. Only with KVDYNO_SCAN. Reads up to `count` records in the order of their keys, compared as
 *    unsigned bytes, from the first at or after `from`. Each is copied as: length of the key (uint32_t
 *    in the machine's byte order), length of the value (the same), key, value, without gaps.
 *    KVDYNO_OK, MORE_ROOM or FAILED. */
int32_t kvdyno_scan(kvdyno_client *client, kvdyno_bytes from, size_t count, kvdyno_buffer *rows,
                    kvdyno_error *error);

#ifdef __cplusplus
}
#endif

#endif
