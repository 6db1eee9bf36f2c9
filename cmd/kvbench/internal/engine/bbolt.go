package engine

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

var boltBucket = []byte("kvbench")

type bolt struct {
	flat
	db      *bbolt.DB
	batch   pairs
	order   []int
	writers int
}

func openBBolt(dir string, s Settings) (Live, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("bbolt: %w", err)
	}
	db, err := bbolt.Open(filepath.Join(dir, "bolt.db"), 0o600, &bbolt.Options{
		NoSync: s.Durability != Durable, NoGrowSync: s.Durability != Durable,
		NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, NoStatistics: true,
	})
	if err != nil {
		return nil, fmt.Errorf("bbolt: open %s: %w", dir, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(boltBucket)
		return err
	})
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("bbolt: create the bucket: %w", err)
	}
	// A group is complete when every writer is in it; none waits for a timer then.
	db.MaxBatchSize = max(1, s.Writers)
	b := &bolt{db: db, writers: s.Writers}
	b.batched = batched{perKey: s.BatchKeys, add: b.batch.add, write: b.writeBatch, reset: b.batch.reset}
	return b, nil
}

// writeBatch writes the batch in key order, so that each leaf is found once.
func (b *bolt) writeBatch() error {
	b.order = b.batch.sorted(b.order)
	return failed("bbolt: update", b.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(boltBucket)
		for _, i := range b.order {
			key, value := b.batch.at(i)
			if err := bucket.Put(key, value); err != nil {
				return err
			}
		}
		return nil
	}))
}

// NewReader returns a reader that opens a transaction for each lookup.
func (b *bolt) NewReader(access Access, _ Kind) (Reader, error) {
	return &boltReader{db: b.db}, onlyGet("bbolt", access)
}

// Set writes one key, together with those of other goroutines if there are some.
func (b *bolt) Set(key, value []byte) error {
	put := func(tx *bbolt.Tx) error { return tx.Bucket(boltBucket).Put(key, value) }
	update := b.db.Update
	if b.writers > 1 {
		update = b.db.Batch
	}
	return failed("bbolt: put", update(put))
}

func (b *bolt) Delete(key []byte) error {
	return failed("bbolt: delete", b.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(boltBucket).Delete(key) }))
}

func (b *bolt) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	err := b.db.View(func(tx *bbolt.Tx) error {
		c, more := tx.Bucket(boltBucket).Cursor(), upTo(limit, visit)
		for key, value := c.Seek(start); key != nil && more(key, value); key, value = c.Next() {
		}
		return nil
	})
	return failed("bbolt: scan", err)
}

func (b *bolt) Close() error {
	return failed("bbolt: close", b.db.Close())
}

// boltReader keeps its closure, so that a lookup allocates only what bbolt does.
type boltReader struct {
	uncounted
	db       *bbolt.DB
	dst, key []byte
	found    bool
	view     func(*bbolt.Tx) error
}

// Get copies the value out of the map before the transaction ends.
func (r *boltReader) Get(dst, key []byte) ([]byte, bool, error) {
	if r.view == nil {
		r.view = r.get
	}
	r.dst, r.key, r.found = dst, key, false
	if err := r.db.View(r.view); err != nil {
		return dst, false, fmt.Errorf("bbolt: view: %w", err)
	}
	return r.dst, r.found, nil
}

func (r *boltReader) get(tx *bbolt.Tx) error {
	if value := tx.Bucket(boltBucket).Get(r.key); value != nil {
		r.dst, r.found = append(r.dst, value...), true
	}
	return nil
}
