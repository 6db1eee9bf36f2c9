package changelog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A slot has a file SLOT-<name> of one line:
//
//	siftkv slot=index history=1234 acked=4711 crc=89abcdef
//
// History is the id of the history that it is a position of, in the manifest. Acked is the last write that its consumer
// has acknowledged. crc is as in CURRENT. The file is replaced as a whole.

// A record is the content of a slot's file.
type record struct {
	Name    string
	History uint64
	Acked   base.SeqNum
}

// maxRecordSize is much more than a slot's file has.
const maxRecordSize = 4096

func readRecord(fsys vfs.FS, name string) (r record, err error) {
	data, err := vfs.ReadSmallFile(fsys, name, maxRecordSize)
	if err != nil {
		return r, err
	}
	if r, err = parseRecord(string(data), manifest.SlotOf(filepath.Base(name))); err != nil {
		err = &base.CorruptionError{File: name, What: "the position of a slot: drop it", Cause: err}
	}
	return r, err
}

// parseRecord is the inverse of record.sealed, for a slot.
func parseRecord(text, slot string) (record, error) {
	r := record{Name: slot}
	ok := base.ScanLine(text, "siftkv slot="+slot+" history=%d acked=%d", &r.History, (*uint64)(&r.Acked))
	if !ok || string(r.sealed()) != text || r.Acked > base.MaxSeqNum {
		return record{}, errors.New("it is not what a store writes for this slot")
	}
	return r, nil
}

// write makes the record durable, in place of the one before.
func (r *record) write(fsys vfs.FS, dir string) error {
	return vfs.ReplaceFile(fsys, filepath.Join(dir, manifest.SlotName(r.Name)), r.sealed())
}

// sealed returns what a file with the record has.
func (r *record) sealed() []byte {
	return base.SealLine(fmt.Sprintf("siftkv slot=%s history=%d acked=%d", r.Name, r.History, uint64(r.Acked)))
}

// removeRecord removes a slot's file, durably.
func removeRecord(fsys vfs.FS, dir, slot string) error {
	err := fsys.Remove(filepath.Join(dir, manifest.SlotName(slot)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fsys.SyncDir(dir)
}

// ReadPosition returns what the file of a slot says: which history it is of, and what its consumer has acknowledged.
func ReadPosition(fsys vfs.FS, name string) (history uint64, acked base.SeqNum, err error) {
	r, err := readRecord(fsys, name)
	return r.History, r.Acked, err
}

// lockTries bounds attempts to lock a slot: a look at the lock, which takes microseconds, is in the way of one.
const lockTries, lockPause = 20, time.Millisecond

// lockSlot takes the lock of a slot's consumer, which keeps other processes out. The error matches vfs.ErrLocked if
// another consumer has it.
func lockSlot(fsys vfs.FS, dir, slot string) (io.Closer, error) {
	for try := 1; ; try++ {
		lock, err := fsys.Lock(filepath.Join(dir, manifest.ConsumerName(slot)), vfs.Exclusive)
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, vfs.ErrLocked) || try == lockTries {
			return nil, fmt.Errorf("siftkv: lock slot %s: %w", slot, err)
		}
		time.Sleep(lockPause)
	}
}

// isHeld reports whether some process has the lock of a slot's consumer.
func isHeld(fsys vfs.FS, dir, slot string) bool {
	lock, err := fsys.Lock(filepath.Join(dir, manifest.ConsumerName(slot)), vfs.Existing)
	if err == nil {
		err = lock.Close()
	}
	return errors.Is(err, vfs.ErrLocked)
}
