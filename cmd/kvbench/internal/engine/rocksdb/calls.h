// What would take several calls from Go takes one: see db.go.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <rocksdb/c.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// kv_get copies the value of a key into dst if it fits, and returns its size; -1 if the
// key is not there, or if *failed is set. A value that does not fit is left in *held for
// kv_take.
static inline int64_t kv_get(rocksdb_t *db, rocksdb_readoptions_t *o, const char *key, size_t key_size, char *dst,
                             size_t room, rocksdb_pinnableslice_t **held, char **failed) {
  rocksdb_pinnableslice_t *pinned = rocksdb_get_pinned(db, o, key, key_size, failed);
  if (pinned == NULL) {
    return -1;
  }
  size_t size = 0;
  const char *value = rocksdb_pinnableslice_value(pinned, &size);
  if (size > room) {
    *held = pinned;
    return (int64_t)size;
  }
  if (size != 0) {
    memcpy(dst, value, size);
  }
  rocksdb_pinnableslice_destroy(pinned);
  return (int64_t)size;
}

// kv_take copies a value that was held into dst, which has room, and lets go of it.
static inline void kv_take(rocksdb_pinnableslice_t *held, char *dst) {
  size_t size = 0;
  const char *value = rocksdb_pinnableslice_value(held, &size);
  memcpy(dst, value, size);
  rocksdb_pinnableslice_destroy(held);
}

// kv_scan copies up to limit entries (0: no limit) from where the iterator is into dst
// and moves it past them, as long as the next one fits. An entry is the size of its key
// and that of its value, a uint32_t each in the machine's order, and both. It returns
// the number of entries, and in *used the bytes; 0 and the bytes that the next entry
// takes if that has no room; 0 and 0 at the end.
static inline size_t kv_scan(rocksdb_iterator_t *it, size_t limit, char *dst, size_t room, size_t *used) {
  size_t entries = 0, at = 0;
  for (; rocksdb_iter_valid(it) && (limit == 0 || entries < limit); rocksdb_iter_next(it)) {
    size_t key_size = 0, value_size = 0;
    const char *key = rocksdb_iter_key(it, &key_size);
    const char *value = rocksdb_iter_value(it, &value_size);
    size_t need = 2 * sizeof(uint32_t) + key_size + value_size;
    if (need > room - at) {
      if (entries == 0) {
        at = need;
      }
      break;
    }
    uint32_t sizes[2] = {(uint32_t)key_size, (uint32_t)value_size};
    memcpy(dst + at, sizes, sizeof sizes);
    memcpy(dst + at + sizeof sizes, key, key_size);
    memcpy(dst + at + sizeof sizes + key_size, value, value_size);
    at += need;
    entries++;
  }
  *used = at;
  return entries;
}

// kv_asserts says whether the library was built with assertions: only then has it the
// points where its own tests hold threads up.
static inline int kv_asserts(void) {
  return dlsym(RTLD_DEFAULT, "_ZN7rocksdb9SyncPoint11GetInstanceEv") != NULL;
}
