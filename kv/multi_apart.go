package kv

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
)

// Values that lie apart are read when all keys have their handles: in the order in which they lie in the
// files, and side by side where a read is not out of memory.

// keepHandle is answerApart that leaves the value to readApart, unless it is of an operand.
func (k *multiKey) keepHandle(stored []byte, trailer base.Trailer) error {
	h, expiry, err := handleOf(k.key, stored, trailer.Kind())
	switch {
	case err != nil:
		return err
	case trailer.SeqNum() < k.cover || trailer.Kind().Expires() && expiry <= k.d.now():
		k.answer(nil, base.MakeTrailer(trailer.SeqNum(), base.KindDelete))
	case k.chain.begun:
		_, err = k.answerApart(stored, trailer)
	default:
		k.apart, k.expiry = &h, expiry
	}
	return err
}

// memtableApart is memtable, and leaves a value to readApart of which there is a handle.
func (k *multiKey) memtableApart(t *memTable) bool {
	var h blob.Handle
	k.stream = &h
	done := k.memtable(t, "")
	if k.stream = nil; h.File != 0 {
		k.apart = &h
	}
	return done
}

// readApart reads the values of which keys have handles.
func (m *multiGet) readApart() {
	if m.s.version.BlobTotals().Files == 0 && !m.s.holdsBlobs() {
		return
	}
	m.apart = m.apart[:0]
	for i := range m.keys {
		if k := &m.keys[i]; k.apart != nil && k.err == nil {
			m.apart = append(m.apart, k)
		}
	}
	slices.SortFunc(m.apart, func(a, b *multiKey) int {
		return cmp.Or(cmp.Compare(a.apart.File, b.apart.File), cmp.Compare(a.apart.Offset, b.apart.Offset))
	})
	if m.d.tables.Far { // each is a request
		sideBySide(len(m.apart), func(i int) { m.apart[i].readApart() })
		return
	}
	for i, k := range m.apart {
		began := time.Now()
		k.readApart()
		if left := m.apart[i+1:]; len(left) > 1 && time.Since(began) >= deviceWait {
			readBeside(left)
			return
		}
	}
}

// readBeside reads the values of keys in several goroutines, each of which takes the next.
func readBeside(keys []*multiKey) {
	var next atomic.Int64
	var readers sync.WaitGroup
	for range min(len(keys), maxReads) {
		readers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(keys)); i = next.Add(1) - 1 {
				keys[i].readApart()
			}
		})
	}
	readers.Wait()
}

// readApart reads the key's value.
func (k *multiKey) readApart() {
	k.value, k.err = k.d.appendApart(nil, k.version, k.key, *k.apart)
	k.found, k.owned = k.err == nil, true
}
