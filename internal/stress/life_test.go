package stress

import (
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// A life is a store from its creation on.
type life struct {
	seed     uint64
	rng      *rand.Rand
	want     featureSet
	patience time.Duration
	disk     *Disk
	oracle   *oracle
	counts   *counts
	copied   copied
	bucket   *bucket // of a store in an object store, else nil

	consumers []*consumer
	losses    losses
	slotBytes int64 // the bound of what is kept for slots; 0: the default, which a life does not reach

	goesOn     bool   // a round has been left that goes on
	lastEnd    string // how the round before ended
	killed     bool   // and only its process died
	closedWell bool   // and Close succeeded
	doctorNext bool   // the doctor is to look at what it left
}

const roundsOfLife = 8

func newLife(seed uint64, workers int, c *counts, want featureSet, patience time.Duration) *life {
	rng := rand.New(rand.NewPCG(seed, 1))
	return &life{seed: seed, rng: rng, want: want.some(rng), patience: patience,
		disk: NewDisk(seed), oracle: newOracle(workers), counts: c, lastEnd: "nothing",
		consumers: newConsumers(), slotBytes: []int64{0, 0, 0, 256 << 10}[rng.IntN(4)]}
}

// draw draws the next round.
func (l *life) draw(number int) *round { return l.drawFrom(number, l.rng.Uint64()) }

// drawFrom draws a round from its own seed.
func (l *life) drawFrom(number int, seed uint64) *round {
	rng := rand.New(rand.NewPCG(seed, 2))
	r := &round{life: l, number: number, rng: rng, setup: drawSetup(rng), mix: drawMix(rng, l.want),
		plan: newPlan(rand.New(rand.NewPCG(rng.Uint64(), 3)))}
	if !l.want["separated"] {
		r.setup.opts.SeparateFrom, r.setup.opts.SeparateAtCommit = -1, false
	}
	r.setup.opts.MaxSlotBytes = l.slotBytes
	r.quietAfterEach = len(l.oracle.spaces) == 1
	r.end = l.drawEnding(rng)
	r.after = rng.IntN(2) == 0 && l.want["cut"] && l.bucket == nil
	r.closeNow = make(chan struct{})
	if rng.IntN(3) == 0 && r.end <= endCutInClose && l.bucket == nil {
		r.closeAt = 1 + rng.Int64N(int64(r.mix.steps*len(l.oracle.spaces)))
	}
	r.quiet = l.want["garbage"] && rng.IntN(3) == 0
	r.doctor = l.want["doctor"] && l.bucket == nil && (l.doctorNext || rng.IntN(4) == 0)
	l.doctorNext = false
	r.modes = l.want["modes"] && l.bucket == nil && rng.IntN(4) == 0
	l.drawMode(r)
	for range rng.IntN(4) {
		if f := drawRule(rng, l.want); f != nil {
			r.planned = append(r.planned, f)
		}
	}
	if rng.IntN(3) == 0 {
		if f := drawRule(rng, l.want); f != nil {
			r.inOpen = append(r.inOpen, f)
		}
	}
	if rng.IntN(5) == 0 && l.want["cut"] && l.bucket == nil {
		r.inOpen = append(r.inOpen, cutRule(rng, 20))
	}
	if l.want["fulldisk"] && l.bucket == nil && rng.IntN(4) == 0 {
		r.planned = append(r.planned, smallDisk(rng, l.disk.Used()))
	}
	if l.want["panics"] && rng.IntN(4) == 0 {
		r.setup.panics = true
		r.planned = append(r.planned, panics(rng))
	}
	if l.want["scenarios"] && l.bucket == nil && rng.IntN(2) == 0 {
		scenarios[rng.IntN(len(scenarios))](r)
	}
	if r.end > endCutInClose {
		r.closeAt = 0
	}
	within := 20 + rng.IntN(1500)
	switch r.end {
	case endCut:
		r.planned = append(r.planned, cutRule(rng, within))
	case endKill:
		r.planned = append(r.planned, killRule(rng, within))
	}
	return r
}

func (l *life) drawEnding(rng *rand.Rand) ending {
	for {
		e := ending(rng.IntN(int(numberOfEnding)))
		if l.bucket != nil && e > endCloseWell { // whoever started the process ends it
			continue
		}
		if (e == endCut || e == endCutInClose) && !l.want["cut"] || e == endKill && !l.want["kill"] {
			continue
		}
		return e
	}
}

// drawMode draws a recovery mode. Those that are stricter than the default may refuse a
// store that was not closed.
func (l *life) drawMode(r *round) {
	if !l.closedWell || l.bucket != nil {
		return
	}
	switch m := []kv.RecoveryMode{kv.PointInTime, kv.TolerateTornTail, kv.Absolute, kv.SkipCorrupt}[r.rng.IntN(4)]; {
	case m == kv.Absolute && !l.want["absolute"]:
	default:
		r.setup.opts.RecoveryMode = m
	}
}

// Scenarios are rounds in which several things come together that chance seldom brings
// together.
var scenarios = []func(*round){
	endedLog, ingestBesideFailure, unreadableFile, cutInIngest, overwritten, cutAtSlot, laggingSlots,
}

// endedLog lets the sync of a log fail that has a successor, and the disk be full from then
// on, up to the end of Close.
func endedLog(r *round) {
	r.scenario = "an ended log"
	full := &rule{name: "no space", ops: []string{"create"}, times: -1, err: syscall.ENOSPC}
	fails := &rule{name: "a sync of an ended log fails", ops: []string{"sync"}, kinds: logs, ended: true, times: 1,
		err: syscall.EIO, then: full, closes: r.rng.IntN(2) == 0}
	slow := &rule{name: "latency", ops: []string{"create", "write"}, kinds: tables, times: -1,
		delay: 3 * time.Millisecond}
	r.planned = []*rule{fails, slow}
	r.setup.opts.MaxMemtables = 3 + r.rng.IntN(3)
	r.setup.retry(time.Hour)
	r.mix.sync, r.mix.async, r.mix.largest = 0, r.rng.IntN(30), 4000
	if !fails.closes {
		r.mix.sync = 2
	}
	for _, name := range []string{"Ingest", "DB.Sync", "Flush", "Compact", "Checkpoint", "Backup"} {
		r.mix.more(name, 0)
	}
	r.mix.steps = 60
	r.end, r.after = endClose, r.want["cut"]
}

// ingestBesideFailure lets the sync of a log take long and then fail, while files are
// ingested, and ends the process before the store has resumed.
func ingestBesideFailure(r *round) {
	r.scenario = "ingest beside a failed sync"
	r.planned = []*rule{{name: "a sync fails", ops: []string{"sync"}, kinds: logs, after: 2 + r.rng.IntN(20),
		times: 1, err: syscall.EIO, delay: 5 * time.Millisecond}}
	r.setup.retry(time.Hour)
	r.mix.sync, r.mix.async = 70, 5
	r.mix.more("Ingest", 40)
	r.mix.steps = 40
	r.end = []ending{endKill, endCut}[r.rng.IntN(2)]
}

// unreadableFile makes a young file unreadable, while memtables and level 0 are small.
func unreadableFile(r *round) {
	r.scenario = "an unreadable file"
	r.planned = []*rule{{name: "a file cannot be read", ops: []string{"open", "read"}, kinds: tables,
		nth: 2 + r.rng.IntN(6), times: -1, err: syscall.EIO}}
	o := &r.setup.opts
	o.CacheSize, o.MemoryLimit = -1, 0
	o.L0CompactionThreshold = 1 + r.rng.IntN(2)
	o.L0SlowdownThreshold = o.L0CompactionThreshold + r.rng.IntN(2)
	o.L0StopThreshold = o.L0SlowdownThreshold + 1 + r.rng.IntN(3)
	o.Compression = sstable.NoCompression
	r.setup.retry(time.Millisecond)
	r.mix.more("Flush", 4)
	for _, name := range []string{"Ingest", "Compact", "Checkpoint", "Backup"} {
		r.mix.more(name, 0)
	}
	r.mix.largest, r.mix.steps = 4000, 200
	if r.want["cut"] {
		r.end = endCut
	}
}

// cutInIngest cuts the power while a file is being ingested, and has the doctor look at
// what is left.
func cutInIngest(r *round) {
	r.scenario = "a power cut during Ingest"
	r.mix.more("Ingest", 60)
	r.mix.steps = 40
	r.planned = nil
	r.end = []ending{endKill, endCut}[r.rng.IntN(2)]
	r.doctorNext = true
}

// overwritten looks for what Compact has left.
func overwritten(r *round) {
	r.scenario = "overwritten keys"
	r.planned = nil
	r.quiet = r.want["garbage"]
	r.end = endCloseWell
}

// cutAtSlot cuts the power, or fails a call, at a file of a slot: while one is made, acknowledged or dropped, or what
// it needs gets another name.
func cutAtSlot(r *round) {
	r.scenario = "a power cut at a slot"
	at := &rule{name: "power cut at a slot", ops: changing, kinds: slotFiles, after: r.rng.IntN(1 + r.rng.IntN(60)),
		times: 1, cut: r.want["cut"]}
	if !at.cut || r.rng.IntN(3) == 0 {
		at.name, at.cut, at.err, at.short = "a call for a slot fails", false, syscall.EIO, true
	}
	r.planned = []*rule{at}
	r.mix.more("Changes", 60)
	r.mix.more("Flush", 8)
	r.mix.steps = 80
}

// laggingSlots has consumers that take little on a disk that gets full.
func laggingSlots(r *round) {
	r.scenario = "slots that lag on a full disk"
	r.mix.more("Changes", 2)
	r.mix.more("Flush", 8)
	r.mix.largest, r.mix.steps = 6000, 150
	r.planned = []*rule{smallDisk(r.rng, r.disk.Used())}
	r.setup.retry(time.Millisecond)
}
