package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/internal/sequence/sequencetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
)

// A node is a writer of a store that keeps records, each a number, in the order in which they were written. Those that
// are in no log are in the manifest.
type node struct {
	t       *testing.T
	seq     *sequence.Sequence
	logs    *Logs
	log     vfs.WriteFile
	number  uint64
	records []uint64 // in all
	edits   int      // of the longest chain
}

// openNode opens the store as a writer does. What is in the log goes into a manifest, at once or with the next put.
func openNode(ctx context.Context, t *testing.T, store objstore.Store, opts LogOptions, later bool) (*node, error) {
	n := &node{t: t, seq: eager(sequence.New(store, "entry/", sequence.Options{}))}
	logs, st, found, err := openAll(ctx, n.seq, opts)
	if err != nil {
		return nil, err
	}
	n.logs = logs
	if st.List != nil {
		n.records = decodeRecords(t, st.List.Manifest)
		n.number = st.List.Logs[0]
	}
	for _, log := range found {
		for at := 0; at+8 <= len(log.Data); at += 8 {
			n.records = append(n.records, binary.LittleEndian.Uint64(log.Data[at:]))
		}
		n.number = max(n.number, log.Number)
	}
	if later && len(found) == 0 && st.List != nil {
		n.number++
		n.logs.PublishLater(n.list())
		n.log, err = n.logs.Create(n.number)
		return n, err
	}
	return n, n.flush(ctx)
}

// list makes a list of files whose manifest has all records that there are now.
func (n *node) list() listMaker {
	var text []byte
	for _, r := range n.records {
		text = fmt.Appendln(text, r)
	}
	current, number := emptyList().Current, n.number
	return func(start func(uint64) uint64) (*filelist.List, error) {
		return &filelist.List{Current: current, Manifest: text, LogStart: start(number), Logs: []uint64{number}}, nil
	}
}

// decodeRecords returns the records that a manifest has.
func decodeRecords(t *testing.T, manifest []byte) (records []uint64) {
	for line := range strings.Lines(string(manifest)) {
		r, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
		require.NoError(t, err)
		records = append(records, r)
	}
	return records
}

// flush publishes a manifest with all records, and begins a log. A publication that failed is tried again: it may be
// there.
func (n *node) flush(ctx context.Context) (err error) {
	if n.log != nil {
		if err := n.log.Sync(); err != nil {
			return err
		}
		require.NoError(n.t, n.log.Close())
	}
	n.number++
	if n.log, err = n.logs.Create(n.number); err != nil {
		return err
	}
	slot, err := n.logs.Publish(n.list())
	if err != nil && !errors.Is(err, base.ErrFenced) {
		slot, err = n.logs.Publish(n.list())
	}
	if err != nil {
		return err
	}
	n.logs.mu.Lock()
	start, chain := n.logs.start(n.number), n.logs.chain.Slots
	n.logs.mu.Unlock()
	n.edits = max(n.edits, len(chain)-1)
	_, _ = n.seq.Trim(ctx, min(slot, start), slot, time.Now().Add(-sequencetest.Grace), chain...)
	return nil
}

func (n *node) write(records ...uint64) error {
	for _, r := range records {
		if _, err := n.log.Write(binary.LittleEndian.AppendUint64(nil, r)); err != nil {
			return err
		}
	}
	n.records = append(n.records, records...)
	return nil
}

// An ack is what a node was told is durable: all that it had, in order.
type ack struct {
	epoch   uint64
	records []uint64
}

// work is a node's life. It notes what it found, and what was acknowledged, in the order of epochs.
func work(ctx context.Context, c *sequencetest.Client, opts LogOptions, note func(ack), edits *int) {
	ctx, c.Stop = context.WithCancel(ctx)
	defer c.Stop()
	n, err := openNode(ctx, c.Schedule.T, c, opts, c.Rng.IntN(2) == 0)
	if n != nil && n.logs != nil {
		defer n.logs.Close()
		defer func() { *edits = max(*edits, n.edits) }()
	}
	require.NotErrorIs(c.Schedule.T, err, base.ErrCorruption)
	if err != nil {
		return
	}
	epoch := n.logs.Writer().Epoch()
	note(ack{epoch, slices.Clone(n.records)})
	for i := range uint64(2 + c.Rng.IntN(10)) {
		switch c.Rng.IntN(8) {
		case 0:
			if n.flush(ctx) != nil {
				return
			}
			note(ack{epoch, slices.Clone(n.records)})
		case 1:
			if n.write(epoch<<32|i<<8, epoch<<32|i<<8|1) != nil {
				return
			}
		default:
			if n.write(epoch<<32|i<<8) != nil {
				return
			}
			var all sync.WaitGroup
			errs := make([]error, 2)
			for j := range errs {
				all.Go(func() { errs[j] = n.log.Sync() })
			}
			all.Wait()
			if errs[0] != nil && errs[1] != nil {
				return
			}
			note(ack{epoch, slices.Clone(n.records)})
		}
	}
}

// TestModelOfLogs lets writers take a store over from each other. All that a writer was told is durable is what its
// successors begin with: in that order, and once.
func TestModelOfLogs(t *testing.T) {
	total, longest, seen, edits, seeds := 0, 0, 0, 0, scale.Count(scale.Fewer(80, 25), 400)
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			sc := sequencetest.New(t, seed)
			var acks []ack
			opts := LogOptions{Interval: []time.Duration{-1, 5 * time.Second}[sc.Rng.IntN(2)]}
			if sc.Rng.IntN(4) > 0 {
				opts.Edits = shortEdits
			}
			if sc.Rng.IntN(3) == 0 {
				opts.MaxBuffered = 1 + sc.Rng.IntN(30)
			}
			for range 2 + sc.Rng.IntN(2) {
				sc.Start(func(ctx context.Context, c *sequencetest.Client) {
					for range 4 {
						work(ctx, c, opts, func(a ack) { acks = append(acks, a) }, &edits)
					}
				})
			}
			var views [][]uint64
			sc.Start(func(_ context.Context, c *sequencetest.Client) {
				for range 2 {
					view := newViewer(t, c)
					for range 5 + c.Rng.IntN(100) {
						if records, err := view.read(); err == nil {
							views = append(views, records)
						}
					}
					views = append(views, nil) // the next one may be behind
					require.NoError(t, view.f.Close())
				}
			})
			sc.Run()
			last, err := openNode(t.Context(), t, sc.Mem, LogOptions{}, false)
			require.NoError(t, err)
			defer last.logs.Close()
			acks = append(acks, ack{last.logs.Writer().Epoch(), last.records})
			for _, a := range acks {
				for _, b := range acks {
					if a.epoch < b.epoch {
						require.LessOrEqual(t, len(a.records), len(b.records), "epochs %d, %d", a.epoch, b.epoch)
						require.True(t, slices.Equal(a.records, b.records[:len(a.records)]), "epochs %d, %d: %d, %d",
							a.epoch, b.epoch, a.records, b.records)
					}
				}
			}
			before := 0
			for _, view := range views {
				require.True(t, slices.Equal(view, last.records[:len(view)]), "a view of %d, of %d", view, last.records)
				require.True(t, view == nil || len(view) >= before, "a view goes on")
				before = len(view)
				seen += len(view)
			}
			total += len(acks)
			longest = max(longest, len(last.records))
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	require.Greater(t, total, 8*seeds, "the schedules let writers work")
	require.Greater(t, longest, 20)
	require.Equal(t, shortEdits.Max, edits, "lists are edits of edits")
	require.Greater(t, seen, 100*seeds, "views see what is written")
}

// A viewer is a reader's directory, of which it knows the records.
type viewer struct {
	t *testing.T
	f *FS
}

func newViewer(t *testing.T, store objstore.Store) *viewer {
	f := testFS(store)
	f.o.Grace = sequencetest.Grace
	eager(f.seq)
	return &viewer{t, f}
}

// read returns the records that the view has after a refresh, and those that it had if that failed.
func (v *viewer) read() (records []uint64, err error) {
	file, err := v.f.Open(v.f.join(manifest.CurrentName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // there is no store yet
	}
	if err == nil {
		require.NoError(v.t, file.Close())
	}
	if v.f.at.List == 0 {
		return nil, err
	}
	text, failed := vfs.ReadSmallFile(v.f.small, v.f.path(manifest.FileManifest, 7), math.MaxInt64)
	require.NoError(v.t, failed)
	records = decodeRecords(v.t, text)
	names, failed := v.f.small.List(objectdir.Root)
	require.NoError(v.t, failed)
	for _, name := range names {
		kind, num := manifest.ParseFileName(name)
		if kind != manifest.FileWAL {
			continue
		}
		log, failed := vfs.ReadSmallFile(v.f.small, v.f.path(manifest.FileWAL, num), math.MaxInt64)
		require.NoError(v.t, failed)
		for ; len(log) >= 8; log = log[8:] {
			records = append(records, binary.LittleEndian.Uint64(log))
		}
	}
	return records, err
}
