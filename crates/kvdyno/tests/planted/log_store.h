/* log_store.h: the store that all planted engines are. Each engine is a file of a few lines beside this one: it
 * includes this file and says in `behaviour` what it does otherwise; an honest one says nothing of the kind. So a liar
 * differs from its honest twin in one thing, and kvdyno's verdict can be held against what was planted (docs/TRUTH.md).
 *
 *     cc -O2 -shared -fPIC -o liar.so liar_syncs_every_tenth_write.c
 *     kvdyno run power-cut --testbed 'engine:plugin?library=./liar.so&disk=ext4'
 *
 * Records are in memory, and in a log that is read when the store is opened. The log is made of segments of one size.
 * A segment is filled with zeros and synced under another name, then renamed, and its folder is synced. So a write
 * changes no more than bytes that are there already, and one fdatasync is all that it needs. Each entry has a checksum;
 * an entry that is cut off can only be the last one, for each write is synced before the next one begins.
 */
#ifndef LOG_STORE_H
#define LOG_STORE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_DIRECT */
#endif

#include "../../../stores/plugin/kvdyno.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is done when a sync fails. */
enum on_error {
    STOP,   /* honest: that write is not known, and no other is taken */
    END,    /* honest: so does the process */
    IGNORE, /* the write is answered as if it were done */
    RETRY   /* syncs again, and takes that one's success for it */
};

/* What an engine does. All zero is honest. */
struct behaviour {
    const char *name;            /* of the engine */
    unsigned sync_every;         /* syncs at each write of so many; 0 and 1: at each */
    unsigned answers_before_ms;  /* answers at once, and syncs at most so long after */
    bool syncs_another_file;     /* the sync is of a file that holds nothing */
    bool forgets_folder;         /* a new name is not synced */
    bool direct;                 /* writes past the system's cache */
    bool forgets_flush;          /* no sync at all */
    bool elsewhere;              /* keeps everything in the folder that `config` names */
    enum on_error on_error;
    unsigned snapshot_every;     /* a snapshot of all records at each write of so many; 0: none */
    bool recovers_older;         /* begins with the snapshot before the last one, and the log after the last one */
    bool recovers_deleted;       /* deletes in the log are passed over */
    unsigned corrupts_every;     /* one bit of each value of so many is turned when the log is read; 0: of none */
};

static const struct behaviour behaviour; /* of the file that includes this one */

enum {
    SEGMENT = 256 * 1024, /* bytes of a segment */
    BLOCK = 4096,         /* unit of writes past the cache */
    FIRST_BUCKETS = 1 << 16
};

/* What an entry is. Zeros are no entry: the log ends there. */
enum kind { NOTHING = 0, PUT = 1, DELETE = 2, END_OF_SNAPSHOT = 3 };

struct entry {
    uint32_t checksum; /* of all that follows */
    uint32_t kind;
    uint32_t key_length;
    uint32_t value_length;
};

struct record {
    struct record *next;
    uint32_t key_length;
    uint32_t value_length;
    uint8_t bytes[]; /* key, value */
};

struct kvdyno_store {
    pthread_mutex_t lock;
    char folder[PATH_MAX];
    int folder_file;
    int other_file;         /* of a liar that syncs it */
    int log;                /* the segment in use */
    uint64_t segment;       /* its number */
    size_t end;             /* of its entries */
    uint64_t newest;        /* number of the last snapshot; 0: none */
    uint8_t *image;         /* what is in it */
    struct record **buckets;
    size_t bucket_count, records;
    uint64_t writes;        /* since the store was opened */
    uint64_t recovered;     /* entries that were read when it was opened */
    bool is_broken;         /* a sync failed: nothing more is taken */
    bool is_dirty, is_closing;
    pthread_t syncer;
};

struct kvdyno_client {
    kvdyno_store *store;
};

static int32_t fail(kvdyno_error *error, int32_t answer, const char *what) {
    error->trouble = KVDYNO_UNAVAILABLE;
    snprintf(error->message, sizeof error->message, "%s: %s", what, strerror(errno));
    return answer;
}

/* FNV-1a. */
static uint32_t sum_on(uint32_t sum, const void *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) {
        sum = (sum ^ ((const uint8_t *)bytes)[i]) * 16777619u;
    }
    return sum;
}

static uint32_t sum_of(const void *bytes, size_t length) { return sum_on(2166136261u, bytes, length); }

/* ---- Records in memory ---- */

static struct record **place_of(kvdyno_store *store, kvdyno_bytes key) {
    struct record **place = &store->buckets[sum_of(key.data, key.length) & (store->bucket_count - 1)];
    while (*place != NULL && ((*place)->key_length != key.length ||
                              memcmp((*place)->bytes, key.data, key.length) != 0)) {
        place = &(*place)->next;
    }
    return place;
}

static bool make_room(kvdyno_store *store) {
    size_t count = store->bucket_count == 0 ? FIRST_BUCKETS : store->bucket_count * 2;
    struct record **buckets = calloc(count, sizeof *buckets);
    if (buckets == NULL) {
        return false;
    }
    for (size_t i = 0; i < store->bucket_count; i++) {
        for (struct record *record = store->buckets[i], *next; record != NULL; record = next) {
            struct record **place = &buckets[sum_of(record->bytes, record->key_length) & (count - 1)];
            next = record->next;
            record->next = *place;
            *place = record;
        }
    }
    free(store->buckets);
    store->buckets = buckets;
    store->bucket_count = count;
    return true;
}

static bool remember(kvdyno_store *store, kvdyno_bytes key, kvdyno_bytes value) {
    struct record *record = malloc(sizeof *record + key.length + value.length);
    if (record == NULL || (store->records >= store->bucket_count && !make_room(store))) {
        free(record);
        return false;
    }
    record->key_length = (uint32_t)key.length;
    record->value_length = (uint32_t)value.length;
    memcpy(record->bytes, key.data, key.length);
    if (value.length > 0) {
        memcpy(record->bytes + key.length, value.data, value.length);
    }
    struct record **place = place_of(store, key), *old = *place;
    record->next = old != NULL ? old->next : NULL;
    *place = record;
    store->records += old == NULL;
    free(old);
    return true;
}

static void forget(kvdyno_store *store, kvdyno_bytes key) {
    struct record **place = place_of(store, key), *old = *place;
    if (old != NULL) {
        *place = old->next;
        store->records--;
        free(old);
    }
}

/* ---- Files ---- */

static void path_of(const kvdyno_store *store, char *path, const char *what, uint64_t number,
                    const char *end) {
    snprintf(path, PATH_MAX, "%.3800s/%s-%08llu%s", store->folder, what, (unsigned long long)number,
             end);
}

static bool write_all(int file, const uint8_t *bytes, size_t length, off_t at) {
    while (length > 0) {
        ssize_t done = pwrite(file, bytes, length, at);
        if (done < 0) {
            return false;
        }
        bytes += done;
        length -= (size_t)done;
        at += done;
    }
    return true;
}

/* A file that is whole and synced gets its name. */
static bool publish(const kvdyno_store *store, const char *from, const char *to) {
    return rename(from, to) == 0 && (behaviour.forgets_folder || fsync(store->folder_file) == 0);
}

/* Opens the next segment, full of zeros. */
static bool begin_segment(kvdyno_store *store) {
    char made[PATH_MAX], path[PATH_MAX];
    path_of(store, made, "segment", store->segment + 1, ".new");
    path_of(store, path, "segment", store->segment + 1, "");
    int file = open(made, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) {
        return false;
    }
    memset(store->image, 0, SEGMENT);
    bool done = write_all(file, store->image, SEGMENT, 0) && fsync(file) == 0;
    close(file);
    if (!done || !publish(store, made, path)) {
        return false;
    }
    file = open(path, O_RDWR | O_CLOEXEC | (behaviour.direct ? O_DIRECT : 0));
    if (file < 0) {
        return false;
    }
    if (store->log >= 0) {
        close(store->log);
    }
    store->log = file;
    store->segment++;
    store->end = 0;
    return true;
}

/* Syncs the log, or does what the engine does instead. */
static bool sync_log(kvdyno_store *store) {
    if (behaviour.forgets_flush) {
        return true;
    }
    int file = behaviour.syncs_another_file ? store->other_file : store->log;
    if (fdatasync(file) == 0) {
        return true;
    }
    return behaviour.on_error == IGNORE || (behaviour.on_error == RETRY && fdatasync(file) == 0);
}

/* Of an engine that answers first. */
static void *sync_later(void *of) {
    kvdyno_store *store = of;
    for (bool goes_on = true; goes_on;) {
        usleep(behaviour.answers_before_ms * 1000);
        pthread_mutex_lock(&store->lock);
        if (store->is_dirty && !sync_log(store)) {
            store->is_broken = true;
        }
        store->is_dirty = false;
        goes_on = !store->is_closing;
        pthread_mutex_unlock(&store->lock);
    }
    return NULL;
}

static size_t length_of(kvdyno_bytes key, kvdyno_bytes value) {
    return sizeof(struct entry) + key.length + value.length;
}

/* Lays an entry out. */
static void lay_out(uint8_t *to, enum kind kind, kvdyno_bytes key, kvdyno_bytes value) {
    struct entry entry = {0, kind, (uint32_t)key.length, (uint32_t)value.length};
    if (key.length > 0) {
        memcpy(to + sizeof entry, key.data, key.length);
    }
    if (value.length > 0) {
        memcpy(to + sizeof entry + key.length, value.data, value.length);
    }
    memcpy(to, &entry, sizeof entry);
    entry.checksum = sum_of(to + sizeof entry.checksum, length_of(key, value) - sizeof entry.checksum);
    memcpy(to, &entry, sizeof entry);
}

/* Finds the entry at the front of some bytes. Its length; 0 where the log ends, -1 where an entry is damaged. */
static long find_entry(const uint8_t *bytes, size_t room, struct entry *entry, kvdyno_bytes *key,
                       kvdyno_bytes *value) {
    if (room < sizeof *entry) {
        return 0;
    }
    memcpy(entry, bytes, sizeof *entry);
    if (entry->kind == NOTHING && entry->checksum == 0) {
        return 0;
    }
    size_t length = sizeof *entry + (size_t)entry->key_length + entry->value_length;
    size_t summed = sizeof entry->checksum;
    if (length > room || sum_of(bytes + summed, length - summed) != entry->checksum) {
        return -1;
    }
    *key = (kvdyno_bytes){bytes + sizeof *entry, entry->key_length};
    *value = (kvdyno_bytes){bytes + sizeof *entry + entry->key_length, entry->value_length};
    return (long)length;
}

/* ---- Snapshots ---- */

/* Removes what no recovery needs any more: the last two snapshots and the log since the older of them stay. */
static void remove_old(kvdyno_store *store, uint64_t older) {
    DIR *folder = opendir(store->folder);
    for (struct dirent *file; folder != NULL && (file = readdir(folder)) != NULL;) {
        unsigned long long number;
        if ((sscanf(file->d_name, "segment-%llu", &number) == 1 ||
             sscanf(file->d_name, "snapshot-%llu", &number) == 1) &&
            number < older) {
            unlinkat(dirfd(folder), file->d_name, 0);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

/* Writes all records into a file whose number is that of the first segment after it. */
static bool take_snapshot(kvdyno_store *store) {
    char made[PATH_MAX], path[PATH_MAX];
    path_of(store, made, "snapshot", store->segment + 1, ".new");
    path_of(store, path, "snapshot", store->segment + 1, "");
    FILE *file = fopen(made, "we");
    if (file == NULL) {
        return false;
    }
    uint8_t *entry = malloc(SEGMENT);
    kvdyno_bytes none = {NULL, 0};
    for (size_t i = 0; entry != NULL && i < store->bucket_count; i++) {
        for (struct record *record = store->buckets[i]; record != NULL; record = record->next) {
            kvdyno_bytes key = {record->bytes, record->key_length};
            kvdyno_bytes value = {record->bytes + record->key_length, record->value_length};
            lay_out(entry, PUT, key, value);
            fwrite(entry, length_of(key, value), 1, file);
        }
    }
    bool done = entry != NULL;
    if (done) {
        lay_out(entry, END_OF_SNAPSHOT, none, none);
        done = fwrite(entry, length_of(none, none), 1, file) == 1;
    }
    free(entry);
    done = fflush(file) == 0 && fsync(fileno(file)) == 0 && done;
    done = fclose(file) == 0 && done;
    if (!done || !publish(store, made, path) || !begin_segment(store)) {
        return false;
    }
    remove_old(store, store->newest);
    store->newest = store->segment;
    return true;
}

/* ---- Recovery ---- */

static bool replay(kvdyno_store *store, enum kind kind, kvdyno_bytes key, kvdyno_bytes value) {
    store->recovered++;
    if (kind == DELETE) {
        if (!behaviour.recovers_deleted) {
            forget(store, key);
        }
        return true;
    }
    if (!remember(store, key, value)) {
        return false;
    }
    if (behaviour.corrupts_every > 0 && store->recovered % behaviour.corrupts_every == 0) {
        struct record *record = *place_of(store, key);
        if (record->value_length > 0) {
            record->bytes[record->key_length + record->value_length / 2] ^= 1;
        }
    }
    return true;
}

/* All bytes of a file; NULL if it cannot be read. */
static uint8_t *read_file(const char *path, size_t *length) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    uint8_t *bytes = size < 0 ? NULL : malloc((size_t)size + 1);
    size_t done = 0;
    while (bytes != NULL && done < (size_t)size) {
        ssize_t more = pread(file, bytes + done, (size_t)size - done, (off_t)done);
        if (more <= 0) {
            free(bytes);
            bytes = NULL;
        } else {
            done += (size_t)more;
        }
    }
    if (file >= 0) {
        close(file);
    }
    *length = done;
    return bytes;
}

/* Takes all of a snapshot, or nothing if it is not whole. */
static bool load_snapshot(kvdyno_store *store, uint64_t number) {
    char path[PATH_MAX];
    path_of(store, path, "snapshot", number, "");
    size_t length, at = 0;
    uint8_t *bytes = read_file(path, &length);
    struct entry entry = {0};
    kvdyno_bytes key, value;
    bool is_whole = false;
    for (long next; bytes != NULL && !is_whole; at += (size_t)next) {
        next = find_entry(bytes + at, length - at, &entry, &key, &value);
        if (next <= 0) {
            break;
        }
        is_whole = entry.kind == END_OF_SNAPSHOT;
    }
    for (at = 0; is_whole;) {
        long next = find_entry(bytes + at, length - at, &entry, &key, &value);
        if (entry.kind == END_OF_SNAPSHOT) {
            break;
        }
        is_whole = replay(store, PUT, key, value);
        at += (size_t)next;
    }
    free(bytes);
    return is_whole;
}

/* Takes the entries of a segment. What is behind the last one of the last segment was never answered, and goes. */
static bool replay_segment(kvdyno_store *store, uint64_t number, bool is_last) {
    char path[PATH_MAX];
    path_of(store, path, "segment", number, "");
    size_t length, at = 0;
    uint8_t *bytes = read_file(path, &length);
    if (bytes == NULL) {
        return false;
    }
    struct entry entry;
    kvdyno_bytes key, value;
    long next;
    while ((next = find_entry(bytes + at, length - at, &entry, &key, &value)) > 0) {
        if (!replay(store, (enum kind)entry.kind, key, value)) {
            break;
        }
        at += (size_t)next;
    }
    bool done = next == 0 || (next < 0 && is_last);
    if (done && is_last) {
        memset(store->image, 0, SEGMENT);
        memcpy(store->image, bytes, at < SEGMENT ? at : SEGMENT);
        int file = open(path, O_RDWR | O_CLOEXEC);
        done = file >= 0 && write_all(file, store->image, SEGMENT, 0) && fsync(file) == 0;
        if (file >= 0) {
            close(file);
        }
        store->log = open(path, O_RDWR | O_CLOEXEC | (behaviour.direct ? O_DIRECT : 0));
        done = done && store->log >= 0;
        store->segment = number;
        store->end = at;
    }
    free(bytes);
    errno = done ? errno : EILSEQ;
    return done;
}

/* Which files there are: the last segment, the two last snapshots, 0 for none. What was not finished is removed. */
static bool look_around(kvdyno_store *store, uint64_t *last, uint64_t snapshots[2]) {
    DIR *folder = opendir(store->folder);
    if (folder == NULL) {
        return false;
    }
    for (struct dirent *file; (file = readdir(folder)) != NULL;) {
        unsigned long long number;
        if (strstr(file->d_name, ".new") != NULL) {
            unlinkat(dirfd(folder), file->d_name, 0);
        } else if (sscanf(file->d_name, "segment-%llu", &number) == 1) {
            *last = number > *last ? number : *last;
        } else if (sscanf(file->d_name, "snapshot-%llu", &number) == 1) {
            uint64_t least = number > snapshots[0] ? snapshots[0] : number;
            snapshots[0] = number > snapshots[0] ? number : snapshots[0];
            snapshots[1] = least > snapshots[1] ? least : snapshots[1];
        }
    }
    closedir(folder);
    return true;
}

static bool recover(kvdyno_store *store) {
    uint64_t last = 0, snapshots[2] = {0, 0};
    if (!look_around(store, &last, snapshots)) {
        return false;
    }
    uint64_t from = store->newest = snapshots[0];
    uint64_t taken = behaviour.recovers_older && snapshots[1] > 0 ? snapshots[1] : from;
    if (taken > 0 && !load_snapshot(store, taken)) {
        /* The one before it, with all of the log since. */
        from = snapshots[1];
        if (from > 0 && !load_snapshot(store, from)) {
            errno = EILSEQ;
            return false;
        }
    }
    char path[PATH_MAX];
    for (uint64_t number = from > 0 ? from : 1; number <= last; number++) {
        path_of(store, path, "segment", number, "");
        /* A liar's segment may never have got its name. */
        if (access(path, F_OK) == 0 && !replay_segment(store, number, number == last)) {
            return false;
        }
    }
    store->segment = last;
    return store->log >= 0 || begin_segment(store);
}

/* ---- What kvdyno calls ---- */

uint32_t kvdyno_abi(void) { return KVDYNO_ABI; }

int32_t kvdyno_open(const kvdyno_settings *settings, kvdyno_store **opened, kvdyno_profile *profile,
                    kvdyno_error *error) {
    kvdyno_store *store = calloc(1, sizeof *store);
    if (store == NULL || !make_room(store) || (store->image = aligned_alloc(BLOCK, SEGMENT)) == NULL) {
        return fail(error, KVDYNO_FAILED, "memory");
    }
    pthread_mutex_init(&store->lock, NULL);
    const char *folder = behaviour.elsewhere ? settings->config : settings->folder;
    snprintf(store->folder, sizeof store->folder, "%s", folder);
    store->log = store->other_file = -1;
    store->folder_file = open(store->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store->folder_file < 0) {
        return fail(error, KVDYNO_FAILED, "the folder");
    }
    if (behaviour.syncs_another_file) {
        store->other_file = openat(store->folder_file, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    }
    if (!recover(store)) {
        return fail(error, KVDYNO_FAILED, "the log");
    }
    if (behaviour.answers_before_ms > 0) {
        pthread_create(&store->syncer, NULL, sync_later, store);
    }
    snprintf(profile->name, sizeof profile->name, "%s", behaviour.name);
    profile->durability = KVDYNO_SURVIVES_POWER_LOSS;
    profile->consistency = KVDYNO_LINEARIZABLE;
    *opened = store;
    return KVDYNO_OK;
}

void kvdyno_close(kvdyno_store *store) {
    if (behaviour.answers_before_ms > 0) {
        pthread_mutex_lock(&store->lock);
        store->is_closing = true;
        pthread_mutex_unlock(&store->lock);
        pthread_join(store->syncer, NULL);
    }
    for (size_t i = 0; i < store->bucket_count; i++) {
        for (struct record *record = store->buckets[i], *next; record != NULL; record = next) {
            next = record->next;
            free(record);
        }
    }
    close(store->log);
    close(store->folder_file);
    if (store->other_file >= 0) {
        close(store->other_file);
    }
    free(store->buckets);
    free(store->image);
    free(store);
}

int32_t kvdyno_connect(kvdyno_store *store, kvdyno_client **connected, kvdyno_error *error) {
    kvdyno_client *client = malloc(sizeof *client);
    if (client == NULL) {
        return fail(error, KVDYNO_FAILED, "memory");
    }
    client->store = store;
    *connected = client;
    return KVDYNO_OK;
}

void kvdyno_disconnect(kvdyno_client *client) { free(client); }

int32_t kvdyno_get(kvdyno_client *client, kvdyno_bytes key, kvdyno_buffer *value,
                   kvdyno_error *error) {
    (void)error;
    kvdyno_store *store = client->store;
    pthread_mutex_lock(&store->lock);
    const struct record *record = *place_of(store, key);
    int32_t answer = KVDYNO_ABSENT;
    if (record != NULL) {
        value->length = record->value_length;
        answer = value->length > value->room ? KVDYNO_MORE_ROOM : KVDYNO_OK;
        if (answer == KVDYNO_OK && value->length > 0) {
            memcpy(value->data, record->bytes + record->key_length, value->length);
        }
    }
    pthread_mutex_unlock(&store->lock);
    return answer;
}

/* Something went wrong with the disk. */
static void break_off(kvdyno_store *store) {
    if (behaviour.on_error == END) {
        _exit(1);
    }
    store->is_broken = behaviour.on_error == STOP;
}

/* Writes an entry behind the last one and syncs it, or does what the engine does instead. */
static int32_t append(kvdyno_store *store, enum kind kind, kvdyno_bytes key, kvdyno_bytes value,
                      kvdyno_error *error) {
    size_t length = length_of(key, value), begin = store->end;
    errno = store->is_broken ? EIO : EFBIG;
    if (store->is_broken || length > SEGMENT) {
        return fail(error, KVDYNO_FAILED, "the log takes nothing more");
    }
    if (begin + length > SEGMENT) {
        if (store->is_dirty && !sync_log(store)) {
            store->is_broken = true;
            return fail(error, KVDYNO_FAILED, "the log");
        }
        store->is_dirty = false;
        if (!begin_segment(store)) {
            int32_t answer = fail(error, KVDYNO_FAILED, "a new segment");
            break_off(store);
            return answer;
        }
        begin = 0;
    }
    lay_out(store->image + begin, kind, key, value);
    size_t from = begin, until = begin + length;
    if (behaviour.direct) {
        from = from / BLOCK * BLOCK;
        until = (until + BLOCK - 1) / BLOCK * BLOCK;
    }
    bool is_due = behaviour.sync_every < 2 || store->writes % behaviour.sync_every == 0;
    bool is_written = write_all(store->log, store->image + from, until - from, (off_t)from);
    bool done = is_written;
    if (done && behaviour.answers_before_ms > 0) {
        store->is_dirty = true;
    } else if (done && is_due) {
        done = sync_log(store);
    }
    if (!done) {
        int32_t answer = fail(error, KVDYNO_INDETERMINATE, "the log");
        /* It may be there when the log is read again. So an honest engine writes nothing behind it. */
        break_off(store);
        store->end = is_written ? begin + length : begin;
        return answer;
    }
    store->end = begin + length;
    return KVDYNO_OK;
}

static void count_write(kvdyno_store *store) {
    store->writes++;
    if (behaviour.snapshot_every > 0 && store->writes % behaviour.snapshot_every == 0 &&
        !take_snapshot(store)) {
        store->is_broken = true;
    }
}

int32_t kvdyno_put(kvdyno_client *client, kvdyno_bytes key, kvdyno_bytes value,
                   kvdyno_error *error) {
    kvdyno_store *store = client->store;
    pthread_mutex_lock(&store->lock);
    int32_t answer = append(store, PUT, key, value, error);
    if (answer == KVDYNO_OK) {
        if (remember(store, key, value)) {
            count_write(store);
        } else {
            answer = fail(error, KVDYNO_INDETERMINATE, "memory");
        }
    }
    pthread_mutex_unlock(&store->lock);
    return answer;
}

int32_t kvdyno_delete(kvdyno_client *client, kvdyno_bytes key, kvdyno_error *error) {
    kvdyno_store *store = client->store;
    kvdyno_bytes none = {NULL, 0};
    pthread_mutex_lock(&store->lock);
    int32_t answer = KVDYNO_ABSENT;
    if (*place_of(store, key) != NULL) {
        answer = append(store, DELETE, key, none, error);
        if (answer == KVDYNO_OK) {
            forget(store, key);
            count_write(store);
        }
    }
    pthread_mutex_unlock(&store->lock);
    return answer;
}

int32_t kvdyno_scan(kvdyno_client *client, kvdyno_bytes from, size_t count, kvdyno_buffer *rows,
                    kvdyno_error *error) {
    (void)client, (void)from, (void)count, (void)rows;
    errno = ENOSYS;
    return fail(error, KVDYNO_FAILED, "scan");
}

#endif
