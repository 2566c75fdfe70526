/* sqlite.c: SQLite as a plug-in of kvdyno, the worked example of docs/stores/plugin.md.
 *
 *     cc -O2 -shared -fPIC -o sqlite.so sqlite.c -lsqlite3
 *     kvdyno run --store 'plugin:./sqlite.so?durability=process'
 *
 * One table; each client is a connection of its own; each write is a transaction of its own in the
 * write-ahead log. The option `config` holds statements that each connection runs first, such as
 * `config=PRAGMA cache_size=-65536`.
 */
#include "kvdyno.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a writer waits for the one before it, ms. */
enum { PATIENCE = 10000 };

struct kvdyno_store {
    char *file;
    char *config;
    int durability;
    sqlite3 *first; /* keeps the log open while no client is connected */
};

struct kvdyno_client {
    sqlite3 *database;
    sqlite3_stmt *get, *put, *delete, *scan;
};

static int trouble_of(int code) {
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return KVDYNO_OVERLOADED;
    case SQLITE_FULL:
        return KVDYNO_FULL;
    case SQLITE_TOOBIG:
    case SQLITE_CONSTRAINT:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_ERROR:
        return KVDYNO_REJECTED;
    default:
        return KVDYNO_UNAVAILABLE;
    }
}

static int32_t fail(sqlite3 *database, int code, kvdyno_error *error) {
    const char *text = database != NULL ? sqlite3_errmsg(database) : sqlite3_errstr(code);
    error->trouble = trouble_of(code);
    snprintf(error->message, sizeof error->message, "%s", text);
    return KVDYNO_FAILED;
}

/* A write that did not succeed: which codes say for sure that the transaction was rolled back? */
static int32_t fail_write(sqlite3 *database, int code, kvdyno_error *error) {
    fail(database, code, error);
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_TOOBIG:
    case SQLITE_CONSTRAINT:
    case SQLITE_READONLY:
        return KVDYNO_FAILED;
    default: /* an input/output error may come after the log was written */
        return KVDYNO_INDETERMINATE;
    }
}

static int connect_database(const kvdyno_store *store, sqlite3 **database) {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int code = sqlite3_open_v2(store->file, database, flags, NULL);
    if (code != SQLITE_OK) {
        return code;
    }
    sqlite3_busy_timeout(*database, PATIENCE);
    /* FULL syncs the log at each commit; OFF hands it to the system, which survives a kill. */
    const char *pragmas = store->durability == KVDYNO_SURVIVES_POWER_LOSS
                              ? "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL"
                              : "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF";
    code = sqlite3_exec(*database, pragmas, NULL, NULL, NULL);
    if (code == SQLITE_OK && store->config[0] != '\0') {
        code = sqlite3_exec(*database, store->config, NULL, NULL, NULL);
    }
    return code;
}

uint32_t kvdyno_abi(void) { return KVDYNO_ABI; }

int32_t kvdyno_open(const kvdyno_settings *settings, kvdyno_store **opened,
                    kvdyno_profile *profile, kvdyno_error *error) {
    kvdyno_store *store = calloc(1, sizeof *store);
    size_t length = strlen(settings->folder) + sizeof "/kvdyno.sqlite";
    if (store != NULL) {
        store->file = malloc(length);
        store->config = malloc(strlen(settings->config) + 1);
    }
    if (store == NULL || store->file == NULL || store->config == NULL) {
        return fail(NULL, SQLITE_NOMEM, error);
    }
    snprintf(store->file, length, "%s/kvdyno.sqlite", settings->folder);
    strcpy(store->config, settings->config);
    store->durability = settings->durability == KVDYNO_SURVIVES_POWER_LOSS
                            ? KVDYNO_SURVIVES_POWER_LOSS
                            : KVDYNO_SURVIVES_PROCESS_KILL;
    int code = connect_database(store, &store->first);
    if (code == SQLITE_OK) {
        code = sqlite3_exec(store->first,
                            "CREATE TABLE IF NOT EXISTS records"
                            " (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
                            NULL, NULL, NULL);
    }
    if (code != SQLITE_OK) {
        int32_t answer = fail(store->first, code, error);
        kvdyno_close(store);
        return answer;
    }
    snprintf(profile->name, sizeof profile->name, "sqlite");
    snprintf(profile->version, sizeof profile->version, "%s", sqlite3_libversion());
    profile->operations = KVDYNO_SCAN;
    profile->durability = store->durability;
    profile->consistency = KVDYNO_LINEARIZABLE; /* a statement sees the last commit before it */
    *opened = store;
    return KVDYNO_OK;
}

void kvdyno_close(kvdyno_store *store) {
    sqlite3_close(store->first);
    free(store->file);
    free(store->config);
    free(store);
}

int32_t kvdyno_connect(kvdyno_store *store, kvdyno_client **connected, kvdyno_error *error) {
    kvdyno_client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        return fail(NULL, SQLITE_NOMEM, error);
    }
    const struct {
        const char *text;
        sqlite3_stmt **statement;
    } all[] = {
        {"SELECT value FROM records WHERE key = ?1", &client->get},
        {"INSERT INTO records VALUES (?1, ?2)"
         " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
         &client->put},
        {"DELETE FROM records WHERE key = ?1", &client->delete},
        {"SELECT key, value FROM records WHERE key >= ?1 ORDER BY key LIMIT ?2", &client->scan},
    };
    int code = connect_database(store, &client->database);
    for (size_t i = 0; code == SQLITE_OK && i < sizeof all / sizeof *all; i++) {
        code = sqlite3_prepare_v3(client->database, all[i].text, -1, SQLITE_PREPARE_PERSISTENT,
                                  all[i].statement, NULL);
    }
    if (code != SQLITE_OK) {
        int32_t answer = fail(client->database, code, error);
        kvdyno_disconnect(client);
        return answer;
    }
    *connected = client;
    return KVDYNO_OK;
}

void kvdyno_disconnect(kvdyno_client *client) {
    sqlite3_finalize(client->get);
    sqlite3_finalize(client->put);
    sqlite3_finalize(client->delete);
    sqlite3_finalize(client->scan);
    sqlite3_close(client->database);
    free(client);
}

/* An empty value is a blob of no bytes, which for SQLite must not be NULL. */
static void bind(sqlite3_stmt *statement, int place, kvdyno_bytes bytes) {
    const void *data = bytes.length > 0 ? (const void *)bytes.data : "";
    sqlite3_bind_blob64(statement, place, data, bytes.length, SQLITE_STATIC);
}

int32_t kvdyno_get(kvdyno_client *client, kvdyno_bytes key, kvdyno_buffer *value,
                   kvdyno_error *error) {
    bind(client->get, 1, key);
    int code = sqlite3_step(client->get);
    int32_t answer = KVDYNO_ABSENT;
    if (code == SQLITE_ROW) {
        const void *found = sqlite3_column_blob(client->get, 0);
        value->length = (size_t)sqlite3_column_bytes(client->get, 0);
        answer = value->length > value->room ? KVDYNO_MORE_ROOM : KVDYNO_OK;
        if (answer == KVDYNO_OK && value->length > 0) {
            memcpy(value->data, found, value->length);
        }
    } else if (code != SQLITE_DONE) {
        answer = fail(client->database, code, error);
    }
    sqlite3_reset(client->get);
    return answer;
}

/* Runs a statement that brings no rows, in a transaction of its own. */
static int32_t write_with(kvdyno_client *client, sqlite3_stmt *statement, kvdyno_error *error) {
    int code = sqlite3_step(statement);
    int32_t answer =
        code == SQLITE_DONE ? KVDYNO_OK : fail_write(client->database, code, error);
    sqlite3_reset(statement);
    return answer;
}

int32_t kvdyno_put(kvdyno_client *client, kvdyno_bytes key, kvdyno_bytes value,
                   kvdyno_error *error) {
    bind(client->put, 1, key);
    bind(client->put, 2, value);
    return write_with(client, client->put, error);
}

int32_t kvdyno_delete(kvdyno_client *client, kvdyno_bytes key, kvdyno_error *error) {
    bind(client->delete, 1, key);
    int32_t answer = write_with(client, client->delete, error);
    return answer == KVDYNO_OK && sqlite3_changes(client->database) == 0 ? KVDYNO_ABSENT : answer;
}

int32_t kvdyno_scan(kvdyno_client *client, kvdyno_bytes from, size_t count, kvdyno_buffer *rows,
                    kvdyno_error *error) {
    bind(client->scan, 1, from);
    sqlite3_bind_int64(client->scan, 2, (sqlite3_int64)count);
    rows->length = 0;
    int code;
    while ((code = sqlite3_step(client->scan)) == SQLITE_ROW) {
        uint32_t lengths[2];
        size_t at = rows->length + sizeof lengths;
        for (int column = 0; column < 2; column++) {
            const void *bytes = sqlite3_column_blob(client->scan, column);
            lengths[column] = (uint32_t)sqlite3_column_bytes(client->scan, column);
            if (lengths[column] > 0 && at + lengths[column] <= rows->room) {
                memcpy(rows->data + at, bytes, lengths[column]);
            }
            at += lengths[column];
        }
        if (at <= rows->room) {
            memcpy(rows->data + rows->length, lengths, sizeof lengths);
        }
        rows->length = at; /* what is needed, once it is more than the room */
    }
    int32_t answer = KVDYNO_OK;
    if (code != SQLITE_DONE) {
        answer = fail(client->database, code, error);
    } else if (rows->length > rows->room) {
        answer = KVDYNO_MORE_ROOM;
    }
    sqlite3_reset(client->scan);
    return answer;
}
