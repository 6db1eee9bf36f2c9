package kv

import (
	"github.com/siftkv/siftkv/internal/replay"
	"github.com/siftkv/siftkv/internal/values"
)

// A RecoveryMode says what Open makes of logs that are not whole. Dropped writes are reported: by
// Options.Events.RecoveryDropped, in Metrics, and by the logger. Only logs are concerned; a damaged manifest is an
// error in every mode, and a damaged table is one to calls that read it.
type RecoveryMode uint8

const (
	// PointInTime recovers the longest history that is certain to have no hole. It stops where a log breaks off, or is
	// damaged in bytes that a crash may have left so. All writes that were acknowledged as synced are before that
	// place. Damage that no crash explains, to bytes that the log proves to have been synced, is an error. It is the
	// default.
	PointInTime = RecoveryMode(replay.PointInTime)

	// TolerateTornTail lets only the last log break off, in its last record. A damaged record, also one that was never
	// synced, and a log that has lost its end while later ones have writes, are errors. After a power cut that may
	// happen without a fault, if writes were not synced.
	TolerateTornTail = RecoveryMode(replay.TolerateTornTail)

	// Absolute lets nothing pass: every log must have been closed cleanly, as
	// Close leaves it. After any crash Open returns an error.
	Absolute = RecoveryMode(replay.Absolute)

	// SkipCorrupt recovers all records that can be read, in order, and passes over those that cannot. The store may
	// then have holes: later writes without earlier ones. For getting at what is left when the other modes refuse.
	SkipCorrupt = RecoveryMode(replay.SkipCorrupt)

	numRecoveryModes = RecoveryMode(replay.NumModes)
)

// String returns the mode's name.
func (m RecoveryMode) String() string { return replay.Mode(m).String() }

// reportDropped reports writes that recovery drops.
func (d *DB) reportDropped(l DroppedInfo) {
	d.counters.RecoveryDrops.Add(1)
	d.counters.RecoveryDroppedBytes.Add(uint64(l.Bytes))
	d.log.Warn("recovery drops writes", "log", l.File, "offset", l.Offset, "bytes", l.Bytes, "reason", l.Reason)
	tell(d, "RecoveryDropped", d.opts.Events.RecoveryDropped, l)
}

// replayer returns a replayer of the store's logs.
func (d *DB) replayer() replay.Replayer {
	return replay.Replayer{FS: d.fs, Dir: d.dir, Hint: d.opts.hint(d.dir), Mode: replay.Mode(d.opts.RecoveryMode),
		Dropped: func(l replay.Dropped) { d.reportDropped(DroppedInfo(l)) },
		Arena:   d.opts.memtableArena(), OwnTable: d.opts.ownTable(), Share: d.memory.share,
		Values: values.Replay{Store: d.values}}
}
