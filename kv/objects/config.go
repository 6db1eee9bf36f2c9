// Package objects has the settings of a store that lives in an object store. Clones, branches, checkpoints, and the
// deletion of what nothing needs any more, need no DB.
package objects

import (
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/remote/locallog"
	"github.com/siftkv/siftkv/objstore"
)

// Config are the settings of a store that lives in an object store: Options.Objects.
//
// Sorted files and blob files are objects, and so are lists of them and what was added to the log. A write with Sync
// returns when the object store has it. It survives the loss of this machine: the next Open, on any machine, finds it.
// Writers that come while a request is under way share the next. Writes with NoSync and Async are put there after
// LogInterval, or once there are LogBuffer bytes of them: a crash loses those of the last moments. LocalLog keeps the
// log on the local disk instead.
//
// To open the store for writing takes it over from the writer before, which gets ErrFenced. After that it acknowledges
// no write, so none can be lost. There is no lock, so OpenContext never waits (but see LocalLog), and Options.ReadOnly
// keeps no writer out.
type Config struct {
	// Store has the objects, and nothing else: see objstore.Sub for a part of a bucket. It must honour conditions:
	// Open for writing refuses one that does not (objstore.ErrUnconditional), by a short test each time and a longer
	// one when the store is created. The DB does not close it. A call that panics, or calls runtime.Goexit, has
	// failed; a write that does may have been performed, as with objstore.ErrUnknown.
	Store objstore.Store

	// Branch is the branch that is opened: empty for the main one, which is there from the
	// beginning; Clone makes others. Each has one writer at a time, all of them at the same time.
	Branch string

	// Checkpoint opens a checkpoint of the branch in place of the branch, by OpenReadOnly: the
	// state that it was when PinCheckpoint was called, for ever. A Clone of it can be written to.
	Checkpoint string

	// LocalLog keeps the log in the directory that Open is given, on the local disk, and not in the object store. Sync
	// and NoSync then mean what they mean for a store in a directory: this machine's disk and operating system have
	// the write. Neither sends a request, and LogInterval and LogBuffer do not matter. Sorted files go to the
	// object store as before, so that what it has is the store as of the last flush.
	//
	// A machine whose disk is lost takes the writes since the last flush with it. As long as a store is open, and
	// after a crash, only Open with this directory opens it for writing. Elsewhere Open fails with ErrLogElsewhere,
	// and leaves the writer in peace. Close flushes: a store that was closed without an error opens anywhere. The
	// directory is locked (ErrLocked), and may be that of the cache. It must not go back to an earlier state: an older
	// copy of it, from a snapshot of the disk, lacks writes. LocalLog may be set at one opening and not at the next:
	// the log is recovered from where it is.
	//
	// Readers of OpenReadOnly, on this machine too, see what was flushed, and WaitForChange wakes at flushes.
	LocalLog bool

	// AbandonLog has Open give up a log on a disk that is out of reach, and go on with what was flushed. Writes since
	// the last flush are lost, even those acknowledged with Sync. So are writes that a writer which still runs
	// acknowledges before its next flush, which fails with ErrFenced. Open reports it by Events.RecoveryDropped.
	// Should the directory come back, its logs do not fit the store any more. To open the store there fails with
	// ErrLogAbandoned, and with AbandonLog keeps them aside, as 000012.wal.epoch-3. A log that is where it should be
	// is recovered whether this is set or not. Set it for one opening: a store that always sets it takes itself over.
	AbandonLog bool

	// LogInterval is how long writes without Sync wait to be put into the object store: 100 ms
	// by default. A store that is not written to sends no requests.
	LogInterval time.Duration

	// LogBuffer is how many bytes of the log wait at most: 8 MiB by default.
	LogBuffer int

	// CacheSize is how many bytes of sorted files and blob files are cached on the local disk, in the directory that
	// Open is given, across restarts. The default is none, and so is less than 2 MiB, which the log says. Damaged
	// bytes there are fetched again, and nothing is lost if it is deleted. One process at a time has the cache.
	CacheSize int64

	// WriteThrough puts sorted files and blob files that this writer writes into the cache at once, so that reading
	// them fetches nothing. A flush or compaction then waits for the local disk too.
	WriteThrough bool

	// Patience is how long a write waits for an object store that cannot be reached, or has too
	// much to do: 1 minute by default. Then it fails, and the store takes no writes until it has
	// resumed. The pauses between tries are counted, and requests are not: however short it is, a
	// request that nothing is wrong with succeeds.
	Patience time.Duration

	// Grace is how long objects that the store no longer needs are kept for readers of
	// OpenReadOnly that have not refreshed. It is 10 minutes by default, none if negative.
	// Readers that are given the same as the writer never miss what is new. With less than a
	// minute, a Refresh that comes so late is a LIST more.
	Grace time.Duration

	// MaxStaleness bounds how long a writer that another one has taken over returns values that may be outdated. After
	// it, reads, Sync and transactions that write nothing fail with ErrFenced; or with ErrUnconfirmed, if the object
	// store does not answer, until it does. Iterators that are open go on, and writes fail as they do without it.
	// 0, the default, is no bound: a writer that only reads returns what it has, and learns that it was taken over
	// when it writes next.
	//
	// It costs a GET at Open, and one or two in each half of MaxStaleness; a read costs no more than without it. A
	// process that was stopped for a while may return an outdated value in the moment in which it continues.
	MaxStaleness time.Duration
}

// ErrFenced is matched by errors of a store in an object store that another writer has taken over.
// Nothing that was acknowledged is lost: it is in the store as the other one has it. Writes
// whose fate is not known were not acknowledged. The DB takes no writes any more. Reads go on, of what it has, unless
// Config.MaxStaleness is set: then they fail too. DB.Fenced tells without a write.
var ErrFenced = base.ErrFenced

// Errors of Open that say where the log of a store in an object store is: see Config.LocalLog. The message names the
// machine and the directory, and what to do.
var (
	// ErrLogElsewhere is matched when the log is on a disk, and not in the directory that Open was given.
	ErrLogElsewhere = locallog.ErrElsewhere
	// ErrLogAbandoned is matched when the directory that Open was given has logs that another writer has given up.
	ErrLogAbandoned = locallog.ErrAbandoned
)
