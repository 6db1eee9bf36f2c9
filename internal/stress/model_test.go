package stress

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
)

// A bench is an oracle and a store that a test makes up.
type bench struct {
	t *testing.T
	o *oracle
}

// write does an operation of a worker: it sets a key of its own to the operation's number.
func (b *bench) write(worker int, l level, s opState) *operation {
	b.t.Helper()
	k := b.o.spaces[worker]
	op := k.begin("test", l, b.o.tick())
	op.writes = append(op.writes, write{key: k.prefix + "key", value: strconv.FormatUint(op.id, 10)})
	k.submit(op)
	if s == acknowledged {
		require.Nil(b.t, b.o.acknowledged(k, op))
	} else {
		k.finish(op, s, b.o.tick(), syscall.EIO)
	}
	return op
}

// content is a store that has so many of each worker's operations.
func (b *bench) content(last ...uint64) content {
	c := content{}
	for n, id := range last {
		if id > 0 {
			p := b.o.spaces[n].prefix
			c[p+"#"], c[p+"key"] = strconv.FormatUint(id, 10), strconv.FormatUint(id, 10)
		}
	}
	return c
}

func (b *bench) settle(kind string, c content, killed bool) verdict {
	b.t.Helper()
	v, f := b.o.settle("test", c, killed)
	if kind == "" {
		require.Nil(b.t, f)
	} else {
		require.NotNil(b.t, f)
		require.Equal(b.t, kind, f.Kind, f.Text)
	}
	return v
}

// The verdict on stores that are right, and on all kinds that are wrong.
func TestVerdicts(t *testing.T) {
	for name, test := range map[string]func(*bench){
		"nothing was written": func(b *bench) { b.settle("", content{}, false) },
		"what was not synced may be lost": func(b *bench) {
			b.write(0, levelSync, acknowledged)
			b.write(0, levelNoSync, acknowledged)
			b.write(0, levelAsync, acknowledged)
			require.Equal(b.t, verdict{checked: 1, lost: 2}, b.settle("", b.content(1), false))
		},
		"what was synced may not": func(b *bench) {
			b.write(0, levelSync, acknowledged)
			b.settle("lost", content{}, false)
		},
		"nor what was acknowledged before a sync": func(b *bench) {
			b.write(0, levelAsync, acknowledged)
			b.write(1, levelSync, acknowledged)
			b.settle("lost", b.content(0, 1), false)
		},
		"nor what the system had, if only the process died": func(b *bench) {
			b.write(0, levelNoSync, acknowledged)
			b.settle("lost", content{}, true)
		},
		"but what only the process had": func(b *bench) {
			b.write(0, levelAsync, acknowledged)
			b.settle("", content{}, true)
		},
		"nothing may be lost before what is there": func(b *bench) {
			b.write(0, levelAsync, acknowledged)
			b.write(1, levelAsync, acknowledged)
			b.settle("hole", b.content(0, 1), false)
		},
		"what failed may be there": func(b *bench) {
			b.write(0, levelSync, acknowledged)
			b.write(0, levelSync, failed)
			require.Equal(b.t, verdict{checked: 1, came: 1}, b.settle("", b.content(2), false))
		},
		"unless a later write succeeded": func(b *bench) {
			b.write(0, levelSync, failed)
			b.write(1, levelSync, acknowledged)
			b.settle("came back", b.content(1, 1), false)
		},
		"what was refused may not": func(b *bench) {
			b.write(0, levelSync, refused)
			b.settle("came back", b.content(1), false)
		},
		"nor what another opening did not have": func(b *bench) {
			b.write(0, levelAsync, acknowledged)
			b.settle("", content{}, false)
			b.settle("came back", b.content(1), false)
		},
		"half a batch is no state": func(b *bench) {
			b.write(0, levelSync, acknowledged)
			c := b.content(1)
			delete(c, b.o.spaces[0].prefix+"key")
			b.settle("not a prefix", c, false)
		},
		"nor is one with somebody else's keys": func(b *bench) {
			b.settle("common counters", content{"x": "y"},
				false)
		},
	} {
		t.Run(name, func(t *testing.T) { test(&bench{t, newOracle(2)}) })
	}
}

// Two transactions that made the same of a counter did not run one after the other.
func TestIncrementsAreUnique(t *testing.T) {
	o := newOracle(2)
	for n, k := range o.spaces {
		op := k.begin("test", levelSync, o.tick())
		op.counter, op.value = 0, 1
		k.submit(op)
		f := o.acknowledged(k, op)
		require.Equal(t, n == 0, f == nil)
	}
}

// A view of the past may lack what was acknowledged lately, but for what its own worker did.
func TestViewsOfThePast(t *testing.T) {
	b := &bench{t, newOracle(2)}
	b.write(0, levelSync, acknowledged)
	b.write(0, levelSync, acknowledged)
	require.Nil(t, b.o.checkView("test", b.content(1), nil))
	require.Equal(t, "stale", b.o.checkView("test", b.content(1), b.o.spaces[0]).Kind)
	require.Nil(t, b.o.checkView("test", b.content(2), b.o.spaces[0]))
}

func TestCells(t *testing.T) {
	c := cells{}
	c.apply([]write{
		{key: "a", value: "1"}, {kind: writeMerge, key: "a", value: "2"},
		{kind: writeTTL, key: "b", value: "1", expiry: 10}, {kind: writeMerge, key: "b", value: "2"},
		{kind: writeTTL, key: "c", value: "1", expiry: 10},
		{key: "d"}, {kind: writeDelete, key: "d"},
		{key: "e1"}, {key: "e2"}, {key: "f"}, {kind: writeRange, key: "e", value: "f"},
	})
	require.Equal(t, map[string]string{"a": "1,2", "b": "1,2", "c": "1", "f": ""}, c.at(9))
	require.Equal(t, map[string]string{"a": "1,2", "b": "2", "f": ""}, c.at(10))
	require.Equal(t, 1, c.expired(10))
	require.Equal(t, 1, c.unfolded())
	before := maps.Clone(c)
	c.apply([]write{{kind: writeMerge, key: "a", value: "3"}})
	v, _ := before.get("a", 0)
	require.Equal(t, "1,2", v, "a copy does not change")
}

func TestRules(t *testing.T) {
	p := newPlan(rand.New(rand.NewPCG(1, 1)))
	full := &rule{name: "full", ops: []string{"create"}, times: -1, err: syscall.ENOSPC}
	p.set(&rule{name: "ended", ops: []string{"sync"}, kinds: logs, ended: true, times: 1, err: syscall.EIO, then: full})
	create := func(num uint64) error {
		return p.decide(Call{Op: "create", Kind: manifest.FileWAL, Num: num}).Err
	}
	sync := func(num uint64) error {
		return p.decide(Call{Op: "sync", Kind: manifest.FileWAL, Num: num}).Err
	}
	require.NoError(t, create(1))
	require.NoError(t, sync(1), "it has no successor")
	require.NoError(t, create(2))
	require.ErrorIs(t, sync(1), syscall.EIO)
	require.NoError(t, sync(1), "once")
	require.ErrorIs(t, create(3), syscall.ENOSPC, "what follows")
	p.lift()
	require.NoError(t, create(3))
	require.Equal(t, map[string]int{"ended": 1, "full": 1}, p.strikes)

	r := &rule{after: 2, times: 1, pause: 1}
	var struck []bool
	for range 6 {
		struck = append(struck, r.strikes(nil))
	}
	require.Equal(t, []bool{false, false, true, false, false, true}, struck)
}

func TestFeatures(t *testing.T) {
	for text, want := range map[string]int{"": len(Features), "all": len(Features), "-ttl": len(Features) - 1,
		"all,-ttl,-cut": len(Features) - 2, "ttl,cut": 2} {
		set, err := parseFeatures(text)
		require.NoError(t, err)
		n := 0
		for _, on := range set {
			if on {
				n++
			}
		}
		require.Equal(t, want, n, text)
	}
	_, err := parseFeatures("ttl,nothing")
	require.ErrorContains(t, err, `there is no feature "nothing"`)
}
