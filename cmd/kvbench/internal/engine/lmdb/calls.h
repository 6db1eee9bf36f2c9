// What would take several calls from Go takes one: see db.go.
#include <lmdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// kv_delete is the size of the value of an entry that is to be deleted.
#define kv_delete UINT32_MAX

// kv_open opens or creates the one database of an environment.
static inline int kv_open(const char *dir, size_t map, unsigned flags, MDB_env **env, MDB_dbi *dbi) {
  MDB_txn *txn = NULL;
  int rc = mdb_env_create(env);
  if (rc != 0) {
    *env = NULL;
    return rc;
  }
  if ((rc = mdb_env_set_mapsize(*env, map)) != 0 || (rc = mdb_env_set_maxreaders(*env, 8192)) != 0 ||
      (rc = mdb_env_open(*env, dir, flags, 0600)) != 0 || (rc = mdb_txn_begin(*env, NULL, 0, &txn)) != 0) {
    return rc;
  }
  if ((rc = mdb_dbi_open(txn, NULL, 0, dbi)) != 0) {
    mdb_txn_abort(txn);
    return rc;
  }
  return mdb_txn_commit(txn);
}

// kv_write writes entries in one transaction: each is the size of its key and that of its
// value, a uint32_t each in the machine's order, and both; or kv_delete and the key.
static inline int kv_write(MDB_env *env, MDB_dbi dbi, const char *src, size_t size) {
  MDB_txn *txn = NULL;
  int rc = mdb_txn_begin(env, NULL, 0, &txn);
  if (rc != 0) {
    return rc;
  }
  for (const char *end = src + size; src < end;) {
    uint32_t sizes[2];
    memcpy(sizes, src, sizeof sizes);
    src += sizeof sizes;
    MDB_val key = {sizes[0], (void *)src};
    src += sizes[0];
    if (sizes[1] == kv_delete) {
      rc = mdb_del(txn, dbi, &key, NULL);
      rc = rc == MDB_NOTFOUND ? 0 : rc;
    } else {
      MDB_val value = {sizes[1], (void *)src};
      src += sizes[1];
      rc = mdb_put(txn, dbi, &key, &value, 0);
    }
    if (rc != 0) {
      mdb_txn_abort(txn);
      return rc;
    }
  }
  return mdb_txn_commit(txn);
}

// kv_get renews a transaction that was reset, copies the value of a key into dst if it
// fits, and resets the transaction. It returns the size of the value; -1 if the key is not
// there, or if *rc is set.
static inline int64_t kv_get(MDB_txn *txn, MDB_dbi dbi, const char *key, size_t key_size, char *dst, size_t room,
                             int *rc) {
  if ((*rc = mdb_txn_renew(txn)) != 0) {
    return -1;
  }
  MDB_val k = {key_size, (void *)key}, v;
  int64_t size = -1;
  *rc = mdb_get(txn, dbi, &k, &v);
  if (*rc == 0) {
    size = (int64_t)v.mv_size;
    if (v.mv_size <= room && v.mv_size != 0) {
      memcpy(dst, v.mv_data, v.mv_size);
    }
  } else if (*rc == MDB_NOTFOUND) {
    *rc = 0;
  }
  mdb_txn_reset(txn);
  return size;
}

// kv_scan copies up to limit entries (0: no limit) into dst, as kv_write has them, as long
// as the next one fits: from the first key at or after start on if op is MDB_SET_RANGE,
// from where the cursor is if it is MDB_GET_CURRENT. The cursor is then at the entry that
// comes next. It returns how many, and in *used the bytes; 0 and the bytes that the next
// entry takes if that has no room; *rc is MDB_NOTFOUND at the end.
static inline size_t kv_scan(MDB_cursor *cursor, int op, const char *start, size_t start_size, size_t limit, char *dst,
                             size_t room, size_t *used, int *rc) {
  MDB_val key = {start_size, (void *)start}, value;
  size_t entries = 0, at = 0;
  if (op == MDB_SET_RANGE && start_size == 0) {
    op = MDB_FIRST;
  }
  *rc = mdb_cursor_get(cursor, &key, &value, (MDB_cursor_op)op);
  while (*rc == 0 && (limit == 0 || entries < limit)) {
    size_t need = 2 * sizeof(uint32_t) + key.mv_size + value.mv_size;
    if (need > room - at) {
      if (entries == 0) {
        at = need;
      }
      break;
    }
    uint32_t sizes[2] = {(uint32_t)key.mv_size, (uint32_t)value.mv_size};
    memcpy(dst + at, sizes, sizeof sizes);
    memcpy(dst + at + sizeof sizes, key.mv_data, key.mv_size);
    memcpy(dst + at + sizeof sizes + key.mv_size, value.mv_data, value.mv_size);
    at += need;
    entries++;
    *rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
  }
  *used = at;
  return entries;
}
