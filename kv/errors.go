package kv

import (
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/budget"
	"github.com/siftkv/siftkv/internal/conflict"
	"github.com/siftkv/siftkv/internal/ingest"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Errors that callers match with errors.Is. The error that is returned also names the
// file, the option or the length of the key that is at fault.
var (
	// ErrNotFound is returned by lookups of keys that are not there.
	ErrNotFound = base.ErrNotFound
	// ErrClosed is returned by every method after Close.
	ErrClosed = base.ErrClosed
	// ErrCorruption is matched by every error about damaged bytes. The error is, or wraps, a *CorruptionError.
	ErrCorruption = base.ErrCorruption
	// ErrLocked is returned by Open when another process, or this one, has the store open. The error is, or wraps, a
	// *LockedError, which names the lock file and the holder's process id. OpenContext waits instead.
	ErrLocked = vfs.ErrLocked
	// ErrStale is returned by reads of a store opened with OpenReadOnly when the writer
	// has removed a file that they need. Refresh makes a new view.
	ErrStale = errors.New("siftkv: the view has lost a file to the writer: refresh it")
	// ErrReadOnly is returned by writes to a store that was opened read-only, or that became read-only because a
	// write or background work failed. The error then wraps the cause.
	ErrReadOnly = errors.New("siftkv: the store is read-only")
	// ErrNotDurable is matched by the error of a write with Sync whose sync failed when the write was visible already,
	// because a later one had promised less. The write stays: it is durable once the store takes writes again, and lost
	// if the process or the machine ends before. The error matches ErrReadOnly too. Without a match, the write is not
	// visible and never will be. DB.Sync, whose writes are all visible, returns it when its sync fails.
	ErrNotDurable = base.ErrNotDurable
	// ErrInvalidOptions is matched when Open refuses its options.
	ErrInvalidOptions = base.ErrInvalidOptions
	// ErrMemoryBudget is returned by Open when Options.MemoryBudget is too small for another
	// store in addition to those that are open. The error says how much each needs.
	ErrMemoryBudget = budget.ErrTooSmall
	// ErrForeignDirectory is returned by Open for a directory that is not empty
	// and holds no store. Nothing in it was touched.
	ErrForeignDirectory = base.ErrForeignDirectory
	// ErrDirectoryMoved is matched by the error of a store whose directory was moved, replaced or removed while it
	// was open. The name that Open was given leads elsewhere, or nowhere. The store takes no writes (the error
	// matches ErrReadOnly too) and goes on reading the directory that it has, which has all that was written. It
	// touches nothing else. Once that directory has its name again, writes go on. Refresh of a view returns the error
	// too, and so do Close and a Restore that was under way.
	ErrDirectoryMoved = vfs.ErrMoved
	// ErrNotExist is returned when a store that does not exist is opened read-only. The
	// error matches fs.ErrNotExist too, except for a branch or a checkpoint that is missing.
	ErrNotExist = base.ErrNotExist
	// ErrNewerFormat is matched when a newer version of this package wrote the store. Nothing in it was touched.
	ErrNewerFormat = manifest.ErrNewerFormat
	// ErrTooLarge is returned for keys and values beyond MaxKeySize and MaxValueSize, and for batches, and what a
	// transaction reads, beyond MaxBatchSize.
	ErrTooLarge = base.ErrTooLarge
	// ErrBatchCommitted is returned by Commit and by writes of a batch that was committed
	// since it was made, or since the last Reset. Nothing was written a second time.
	ErrBatchCommitted = errors.New("siftkv: the batch was committed already: reset it first")
	// ErrNotIngestible is matched when Ingest refuses a file that is not damaged: the file
	// overlaps another of the same call, or holds something that Ingest does not take.
	ErrNotIngestible = ingest.ErrNotIngestible
	// ErrBackupMismatch is returned when a backup does not fit: the mark is another store's, or the directory is not
	// as the previous backup left it. Nothing was touched.
	ErrBackupMismatch = backup.ErrMismatch
	// ErrRestoreUnfinished is matched by the *RestoreError of a restore that did not
	// finish, and returned by Open for the directory that it left.
	ErrRestoreUnfinished = manifest.ErrRestoreUnfinished
	// ErrIteratorsOpen is returned by Close when iterators are still open. The message says how many or, with
	// Options.TraceOpens, has the stack that opened each. The store is closed nevertheless.
	ErrIteratorsOpen = errors.New("siftkv: closed with open iterators")
	// ErrSnapshotsOpen is ErrIteratorsOpen for snapshots.
	ErrSnapshotsOpen = errors.New("siftkv: closed with open snapshots")
	// ErrTransactionsOpen is ErrIteratorsOpen for transactions.
	ErrTransactionsOpen = errors.New("siftkv: closed with open transactions")
	// ErrReadersOpen is ErrIteratorsOpen for readers of values: see DB.GetReader.
	ErrReadersOpen = errors.New("siftkv: closed with open readers of values")
	// ErrConflict is returned by Tx.Commit when something that the transaction read has been written since it began.
	// Nothing of the transaction was written: begin a new one.
	ErrConflict = conflict.Err
	// ErrTxDone is returned by a transaction that was committed or discarded, and by its iterators.
	ErrTxDone = errors.New("siftkv: the transaction has ended")
	// ErrTxReadOnly is returned by writes in a read-only transaction.
	ErrTxReadOnly = errors.New("siftkv: the transaction is read-only")
)

// Errors of arguments that only a fault of the program makes.
var (
	// errEmptyPrefix is returned by DeletePrefix: every key begins with an empty prefix.
	errEmptyPrefix = errors.New("siftkv: the prefix is empty: DeleteRange(nil, nil) removes all keys")
	errNilReader   = errors.New("siftkv: the reader is nil")
	errNilWriter   = errors.New("siftkv: the writer is nil")
)

// A CorruptionError says which bytes of which file are damaged, and which command examines them.
type CorruptionError = base.CorruptionError

// Limits.
const (
	MaxKeySize   = 1<<16 - 1 // bytes
	MaxValueSize = 256 << 20 // bytes
	MaxBatchSize = 1 << 30   // bytes that a batch takes in memory: keys, values, about 100 for each write (range: 400)
)

func checkKey(key []byte) error {
	if len(key) > MaxKeySize {
		return fmt.Errorf("%w: a key has %d bytes, the limit is %d", ErrTooLarge, len(key), MaxKeySize)
	}
	return nil
}

func checkValue(value []byte) error {
	if len(value) > MaxValueSize {
		return fmt.Errorf("%w: a value has %d bytes, the limit is %d", ErrTooLarge, len(value), MaxValueSize)
	}
	return nil
}
