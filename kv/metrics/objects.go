package metrics

import "github.com/siftkv/siftkv/internal/requests"

// Objects has the figures of a store in an object store, and of a view of one. A store in a directory has zeros.
type Objects struct {
	// Requests are objstore.Counts of the calls of Objects.Store since Open: what each kind sent and moved, and how it
	// ended. Bytes are received by objstore.Get and sent by objstore.Put and objstore.PutIfAbsent.
	Requests requests.Counts

	// The cache on the local disk (Objects.CacheSize), since Open.
	DiskCacheHits     uint64 // reads of sorted files and blob files that sent no request
	DiskCacheMisses   uint64 // reads that did
	DiskCacheHitBytes uint64 // bytes of the hits
	DiskCacheEvicted  uint64 // pages that gave way to newer ones
	DiskCacheDropped  uint64 // pages that were not written, because the disk was too slow
	DiskCacheDamaged  uint64 // pages and files that were damaged: their bytes are fetched again
	DiskCacheFailures uint64 // operations of the file system that failed
	DiskCacheBytes    int64  // on the disk, now

	// Of a writer. Garbage is sorted files and blob files that the store no longer needs. They wait to be deleted, for
	// Objects.Grace, for a checkpoint, or since a deletion failed.
	GarbageFiles  int    // now
	GarbageBytes  int64  // of these files
	FailedDeletes uint64 // deletions of them that failed, since Open

	// Of a writer, now.
	Epoch uint64 // grows with each Open for writing: the writer with the highest has the store
	// EntriesSinceList is the number of entries of logs since the last list of files, and of the fences of writers.
	// Each is a request when the store is opened.
	EntriesSinceList int
}

// counters lists what counts up from Open, except Requests.
func (m *Objects) counters() []*uint64 {
	return []*uint64{&m.DiskCacheHits, &m.DiskCacheMisses, &m.DiskCacheHitBytes, &m.DiskCacheEvicted,
		&m.DiskCacheDropped, &m.DiskCacheDamaged, &m.DiskCacheFailures, &m.FailedDeletes}
}
