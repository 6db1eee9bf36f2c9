package cluster

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/metrics"
	"github.com/hashicorp/raft-wal/verifier"
)

// checkpoint is the data of entries at which all nodes compare what they have stored since the one before.
const checkpoint = "checkpoint"

// A verified is a log that raft-wal's verifier checks: the leader puts a checksum of what raft gave it into each
// checkpoint, and every node compares it with what it was given and with what it reads. The verifier does not know of
// entries that are removed from the end of the log: it begins anew then.
type verified struct {
	log    raft.LogStore
	report func(good bool, text string)
	now    atomic.Pointer[verifier.LogStore]
}

// onlyLog hides that a log can be closed.
type onlyLog struct {
	raft.LogStore
	raft.MonotonicLogStore
}

func verify(log raft.LogStore, report func(good bool, text string)) *verified {
	v := &verified{log: log, report: report}
	v.begin()
	return v
}

func (v *verified) begin() {
	isCheckpoint := func(e *raft.Log) (bool, error) {
		return e.Type == raft.LogCommand && string(e.Data) == checkpoint, nil
	}
	report := func(r verifier.VerificationReport) {
		switch {
		case r.Err == nil:
			v.report(true, r.Range.String())
		case errors.As(r.Err, new(verifier.ErrChecksumMismatch)):
			v.report(false, r.Err.Error())
		} // else the range is not in the log any more
	}
	hidden := onlyLog{v.log, v.log.(raft.MonotonicLogStore)}
	old := v.now.Swap(verifier.NewLogStore(hidden, isCheckpoint, report, &metrics.NoOpCollector{}))
	if old != nil {
		_ = old.Close()
	}
}

func (v *verified) FirstIndex() (uint64, error)            { return v.log.FirstIndex() }
func (v *verified) LastIndex() (uint64, error)             { return v.log.LastIndex() }
func (v *verified) GetLog(index uint64, e *raft.Log) error { return v.now.Load().GetLog(index, e) }
func (v *verified) StoreLog(e *raft.Log) error             { return v.now.Load().StoreLog(e) }
func (v *verified) StoreLogs(all []*raft.Log) error        { return v.now.Load().StoreLogs(all) }
func (v *verified) IsMonotonic() bool                      { return v.now.Load().IsMonotonic() }

// DeleteRange begins to verify anew if the end of the log is removed. Raft removes it in the goroutine that appends.
func (v *verified) DeleteRange(from, to uint64) error {
	last, err := v.log.LastIndex()
	if err != nil {
		return err
	}
	if err := v.now.Load().DeleteRange(from, to); err != nil {
		return fmt.Errorf("delete %d to %d: %w", from, to, err)
	}
	if to >= last {
		v.begin()
	}
	return nil
}
