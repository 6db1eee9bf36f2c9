package remote

import (
	"context"
	"errors"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/remote/filelist"
)

// A listMaker makes the list of files as it is now. start returns the first slot that is needed if logs below oldest
// are not.
type listMaker func(start func(oldest uint64) uint64) (*filelist.List, error)

// Publish puts a list of files there, and with it what is buffered, and returns the slot. After an error that matches
// objstore.ErrUnknown, the list may be there, or appear with any later put. It is one put, the next one: concurrent
// calls of Sync share it.
func (l *Logs) Publish(list listMaker) (slot uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inLine++
	for l.putting {
		l.changed.Wait()
	}
	l.inLine--
	if l.closed {
		l.changed.Broadcast()
		return 0, base.ErrClosed
	}
	return l.put(list)
}

// PublishLater has the next put include a list of files. That differs from Publish only if there is no next put.
func (l *Logs) PublishLater(list listMaker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = list
}

// Unchanged reports whether nothing was written, and the list of PublishLater is still unpublished.
func (l *Logs) Unchanged() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.due != nil && l.written == 0
}

// put puts what is buffered, with a list of files unless that is nil. The caller holds the lock, and no other put is
// under way. The lock is released during the put itself.
func (l *Logs) put(make listMaker) (slot uint64, err error) {
	chunks, end := l.buffer, l.written
	for _, c := range chunks {
		if _, there := l.first[c.Log]; !there {
			l.first[c.Log] = l.w.Next()
		}
	}
	var list *filelist.List
	if make != nil {
		if list, err = make(l.start); err != nil {
			if len(chunks) > 0 {
				l.fail(err)
			}
			l.changed.Broadcast()
			return 0, err
		}
	}
	patience := l.opts.Patience + onSlowestLine(int64(l.buffered))
	l.buffer, l.buffered, l.putting = nil, 0, true
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(l.ctx, patience)
	slot, err = l.w.Put(ctx, func(slot uint64) []byte { return l.encode(slot, list, chunks) })
	cancel()
	l.mu.Lock()
	l.putting = false
	switch {
	case err == nil:
		l.durable = end
		l.reportLong(chunks)
		if list != nil {
			l.due, l.lists, l.chain, l.perhaps = nil, slot, l.perhaps, filelist.Chain{}
			if len(list.Logs) > 0 {
				l.forget(list.Logs[0])
			}
			l.published(l.chain)
		}
	case len(chunks) > 0:
		l.fail(err)
	case errors.Is(err, base.ErrFenced):
		l.failure = err
	}
	l.schedule()
	l.changed.Broadcast()
	return slot, err
}

// A log with maxEntries entries is reported, and again each reportEvery entries: each of them costs a request when the
// store is opened.
const (
	maxEntries  = 500
	reportEvery = 50
)

// reportLong reports the last log that was put if it has many entries. The lock is held.
func (l *Logs) reportLong(chunks []filelist.Chunk) {
	next := l.w.Next()
	if len(chunks) == 0 || next-l.reported < reportEvery {
		return
	}
	if last := chunks[len(chunks)-1].Log; next-l.first[last] >= maxEntries {
		l.reported = next
		l.long(last)
	}
}

// Entries returns the number of entries that are read for a log when the store is opened.
func (l *Logs) Entries(log uint64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, there := l.first[log]
	if !there {
		return 0
	}
	return int(l.w.Next() - first)
}

// sinceList returns the number of entries behind the newest list of files, the writer's fence included.
func (l *Logs) sinceList() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.w.Next() - 1 - l.lists)
}

// encode returns the body of the entry for a slot. It is called once for each put, after any pending entry has its
// slot.
func (l *Logs) encode(slot uint64, list *filelist.List, chunks []filelist.Chunk) []byte {
	if at := l.perhaps.Slot(); at > 0 && at < slot {
		l.lists, l.chain = at, l.perhaps // what failed there, or seemed to, is there now
	}
	l.perhaps = filelist.Chain{}
	b := filelist.Body{ListSlot: l.lists, Chunks: chunks}
	if list != nil {
		l.perhaps = l.chain.Publish(&b, slot, list, l.whole.Load(), l.opts.Edits)
	}
	return b.Encode()
}

// start returns the first slot that is needed if all logs with numbers below oldest are not. The lock is held.
func (l *Logs) start(oldest uint64) uint64 {
	start := l.w.Next()
	for log, first := range l.first {
		if log >= oldest {
			start = min(start, first)
		}
	}
	return start
}

// forget drops the first slots of logs with numbers below oldest, which no list needs any more.
func (l *Logs) forget(oldest uint64) {
	for log := range l.first {
		if log < oldest {
			delete(l.first, log)
		}
	}
}
