package remote

import "github.com/siftkv/siftkv/kv/metrics"

// Metrics returns the figures of the store's directory.
func (f *FS) Metrics() (m metrics.Objects) {
	if f.o.Requests != nil {
		m.Requests = f.o.Requests.Snapshot()
	}
	c := f.cache.Metrics()
	m.DiskCacheHits, m.DiskCacheMisses, m.DiskCacheHitBytes = uint64(c.Hits), uint64(c.Misses), uint64(c.HitBytes)
	m.DiskCacheEvicted, m.DiskCacheDropped = uint64(c.Evicted), uint64(c.Dropped)
	m.DiskCacheDamaged, m.DiskCacheFailures = uint64(c.Damaged), uint64(c.Failed)
	m.DiskCacheBytes = c.Bytes
	if w := f.asWriter(); w != nil {
		m.GarbageFiles, m.GarbageBytes, m.FailedDeletes = w.collector.garbage()
		m.Epoch, m.EntriesSinceList = w.author.Epoch, w.logs.sinceList()
	}
	return m
}

// garbage returns what the store does not need any more and has not deleted, as far as the writer has noticed: files of
// a number of bytes; and how many deletions have failed.
func (c *collector) garbage() (files int, bytes int64, failed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, some := range [][]removedFile{c.files, c.pinned} {
		files += len(some)
		for _, t := range some {
			bytes += t.Size
		}
	}
	return files, bytes, c.failed
}
