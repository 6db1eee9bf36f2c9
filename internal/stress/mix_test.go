package stress

import "math/rand/v2"

// A mix says what workers do, and how often.
type mix struct {
	actions     []action
	sync, async int // percent of the writes
	largest     int // value, in bytes
	huge        int // one value in so many has up to 64 KiB; 0: none
	steps       int // of a worker
}

type action struct {
	name   string
	weight int
	do     func(*worker) *Finding
}

// drawMix draws a mix of what is wanted.
func drawMix(rng *rand.Rand, want featureSet) mix {
	m := mix{sync: []int{5, 30, 60}[rng.IntN(3)], async: rng.IntN(40), largest: []int{200, 2000, 6000}[rng.IntN(3)],
		huge: []int{0, 20, 100}[rng.IntN(3)], steps: 30 + rng.IntN(1+rng.IntN(250))}
	if !want["huge"] {
		m.huge = 0
	}
	add := func(feature, name string, weight int, do func(*worker) *Finding) {
		if feature == "" || want[feature] {
			m.actions = append(m.actions, action{name, weight, do})
		}
	}
	add("", "Batch.Commit", 40, (*worker).batch)
	add("", "Set", 8, (*worker).setOne)
	add("merge", "Merge", 4, (*worker).mergeOne)
	add("streams", "SetReader", rng.IntN(12), (*worker).setReader)
	add("streams", "GetReader", rng.IntN(8), (*worker).readSlowly)
	add("context", "Batch.CommitContext", 4, (*worker).batchContext)
	add("tx", "Tx", 1+rng.IntN(16), (*worker).increment)
	add("tx", "View", 2, (*worker).readTx)
	add("ingest", "Ingest", rng.IntN(8), (*worker).ingest)
	add("", "DB.Sync", rng.IntN(6), (*worker).sync)
	add("compact", "Flush", 2, (*worker).flush)
	add("compact", "Compact", 1+rng.IntN(2), (*worker).compact)
	add("checkpoint", "Checkpoint", rng.IntN(2), (*worker).checkpoint)
	add("backup", "Backup", rng.IntN(2), (*worker).backup)
	add("", "Get", 10, (*worker).get)
	add("", "MultiGet", 4, (*worker).multiGet)
	add("", "scan", 3, (*worker).scan)
	add("snapshot", "Snapshot", 6, (*worker).snapshot)
	add("snapshot", "Iterator", 6, (*worker).iterate)
	add("follower", "Refresh", 1, (*worker).refresh)
	add("slots", "Changes", 2+rng.IntN(20), (*worker).changes)
	add("ttl", "clock", 1, (*worker).advance)
	add("", "Metrics", 1, (*worker).metrics)
	return m
}

// more makes an action of the mix more frequent.
func (m *mix) more(name string, weight int) {
	for i := range m.actions {
		if m.actions[i].name == name {
			m.actions[i].weight = weight
		}
	}
}
