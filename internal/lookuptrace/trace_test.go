package lookuptrace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/property"
)

// readAll returns the lookups of a trace, whose keys are copies.
func readAll(data []byte) ([]Lookup, *Reader, error) {
	r, err := NewReader(bytes.NewReader(data), "t")
	if err != nil {
		return nil, nil, err
	}
	var all []Lookup
	for {
		l, err := r.Next()
		if errors.Is(err, io.EOF) && !errors.Is(err, ErrUnfinished) {
			return all, r, nil
		}
		if err != nil {
			return all, r, err
		}
		l.Key = bytes.Clone(l.Key)
		all = append(all, l)
	}
}

// readScans returns the scans of a trace, whose keys are copies.
func readScans(data []byte) ([]Scan, error) {
	r, err := NewReader(bytes.NewReader(data), "t")
	if err != nil {
		return nil, err
	}
	var all []Scan
	for {
		_, s, err := r.NextRecord()
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, err
		case s != nil:
			kept := *s
			kept.Start.Key, kept.End.Key = bytes.Clone(s.Start.Key), bytes.Clone(s.End.Key)
			all = append(all, kept)
		}
	}
}

func record(r *Recorder, key string, found, value bool) {
	r.Record([]byte(key), xxhash.Sum64String(key), found, value)
}

// goldenHeader is that of goldenTrace.
func goldenHeader(keys bool) Header {
	return Header{Version: version, ID: 0x1122334455667788, Start: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC),
		Keys: keys, OneIn: 3}
}

// goldenTrace returns a trace that is the same each time.
func goldenTrace(t *testing.T, keys bool) []byte {
	t.Helper()
	h := goldenHeader(keys)
	out := h.encode()
	for n := range uint64(2) {
		c := newChunk()
		c.kind = typeLookups
		for i := range uint64(3) {
			key := fmt.Appendf(nil, "key-%d", i)
			stored := key
			if !keys {
				stored = binary.LittleEndian.AppendUint64(nil, 0xabcdef*(i+1))
			}
			require.True(t, c.add(1000*n+400*i, stored, len(key), (n+i)%4))
		}
		out = append(out, c.seal(h.ID, uint64(len(out)), n)...)
	}
	c := newChunk()
	c.kind = typeScans
	for i, s := range goldenScans(false) {
		require.True(t, c.addScan(500+100*uint64(i), &s, keys))
	}
	out = append(out, c.seal(h.ID, uint64(len(out)), 3)...)
	return append(out, endFrame(h.ID, uint64(len(out)), 6, 3, uint64(len(goldenScans(false))))...)
}

// goldenScans returns the scans of goldenTrace: as they are written, with keys and hashes, or as what is
// read of a trace that has hashes.
func goldenScans(hashed bool) []Scan {
	bound := func(key string) Bound {
		b := Bound{Set: true, Key: []byte(key), Hash: xxhash.Sum64String(key), Size: len(key)}
		if hashed {
			b.Key = nil
		}
		return b
	}
	return []Scan{
		{Start: bound("key-1"), End: bound("key-22"), Common: 4, Entries: 300, Ended: true},
		{Start: bound("key-22"), End: bound("key-1"), Common: 4, Backward: true, KeysOnly: true},
		{Start: bound("")},
		{End: bound("z"), Entries: 1, Backward: true},
		{Entries: 1 << 40, Ended: true},
	}
}

func TestGolden(t *testing.T) {
	for name, keys := range map[string]bool{"keys.trace": true, "hashes.trace": false} {
		data := goldenTrace(t, keys)
		golden.File(t, "testdata/"+name, data)
		all, r, err := readAll(data)
		require.NoError(t, err)
		require.EqualValues(t, 3, r.Dropped())
		require.Equal(t, goldenHeader(keys), r.Header())
		requireGoldenLookups(t, all, keys)

		scans, err := readScans(data)
		require.NoError(t, err)
		want := goldenScans(!keys)
		for i := range want {
			want[i].At = time.Duration(500 + 100*i)
			if keys {
				want[i].Start.Hash, want[i].End.Hash = 0, 0
			}
		}
		require.Equal(t, want, scans)
		require.EqualValues(t, len(want), r.Scans())
	}
}

func requireGoldenLookups(t *testing.T, all []Lookup, keys bool) {
	t.Helper()
	require.Len(t, all, 6)
	want := Lookup{At: 1800, Size: 5, Found: true, Value: true}
	if keys {
		want.Key = []byte("key-2")
	} else {
		want.Hash = 3 * 0xabcdef
	}
	require.Equal(t, want, all[5])
}

// Traces of version 1 have lookups, and a shorter end.
func TestVersion1IsRead(t *testing.T) {
	for name, keys := range map[string]bool{"testdata/v1-keys.trace": true, "testdata/v1-hashes.trace": false} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		all, r, err := readAll(data)
		require.NoError(t, err)
		require.EqualValues(t, 1, r.Header().Version)
		require.EqualValues(t, 2, r.Dropped())
		requireGoldenLookups(t, all, keys)
	}
}

// A frame of scans in a trace of version 1 is damage, and a newer version is refused by name.
func TestScansBelongToVersion2(t *testing.T) {
	h := goldenHeader(true)
	h.Version = 1
	c := newChunk()
	c.kind = typeScans
	require.True(t, c.addScan(1, &goldenScans(false)[0], true))
	frame := c.seal(h.ID, headerSize, 0)
	_, _, err := readAll(append(h.encode(), frame...))
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, "unknown type 3")
	h.Version = version + 1
	_, _, err = readAll(h.encode())
	require.ErrorIs(t, err, ErrNewerFormat)
	h.Version = 0
	_, _, err = readAll(h.encode())
	require.ErrorIs(t, err, base.ErrCorruption)
}

func TestWhatIsRecordedIsReadAgain(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		type ask struct {
			key          string
			found, value bool
		}
		asks := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ask {
			n := rapid.OneOf(rapid.IntRange(0, 40), rapid.Just(maxKeySize)).Draw(t, "size")
			return ask{string(bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, n)), rapid.Bool().Draw(t, "found"),
				rapid.Bool().Draw(t, "value")}
		}), 0, 60).Draw(t, "asks")
		keys := rapid.Bool().Draw(t, "keys")
		var out bytes.Buffer
		r, err := NewRecorder(&out, Options{Keys: keys})
		require.NoError(t, err)
		for _, a := range asks {
			record(r, a.key, a.found, a.value)
		}
		require.NoError(t, r.Close())
		require.ErrorIs(t, r.Close(), base.ErrClosed)
		s := r.Stats()
		require.EqualValues(t, out.Len(), s.Bytes)
		require.EqualValues(t, len(asks), s.Recorded+s.Dropped)
		all, read, err := readAll(out.Bytes())
		require.NoError(t, err)
		require.EqualValues(t, s.Recorded, len(all))
		require.Equal(t, s.Dropped, read.Dropped())
		if s.Dropped > 0 {
			return
		}
		slices.SortStableFunc(all, func(a, b Lookup) int { return int(a.At - b.At) })
		hashes := map[uint64]bool{}
		count := map[ask]int{}
		for _, a := range asks {
			count[a]++
		}
		for _, l := range all {
			if keys {
				a := ask{string(l.Key), l.Found, l.Value}
				count[a]--
				require.GreaterOrEqual(t, count[a], 0)
				require.Equal(t, len(l.Key), l.Size)
			} else {
				hashes[l.Hash] = true
			}
		}
		if !keys {
			distinct := map[string]bool{}
			for _, a := range asks {
				distinct[a.key] = true
			}
			require.Len(t, hashes, len(distinct), "equal keys have equal hashes")
		}
	})
}

func TestHashesOfTwoTracesDiffer(t *testing.T) {
	hash := func() uint64 {
		var out bytes.Buffer
		r, err := NewRecorder(&out, Options{})
		require.NoError(t, err)
		record(r, "alice@example.org", true, true)
		require.NoError(t, r.Close())
		require.NotContains(t, out.String(), "alice")
		all, _, err := readAll(out.Bytes())
		require.NoError(t, err)
		return all[0].Hash
	}
	require.NotEqual(t, hash(), hash())
}

func TestOfASampledKeyAllLookupsAreThere(t *testing.T) {
	var out bytes.Buffer
	r, err := NewRecorder(&out, Options{Keys: true, OneIn: 10})
	require.NoError(t, err)
	const keys, times = 5000, 3
	for range times {
		for i := range keys {
			record(r, strconv.Itoa(i), true, true)
		}
	}
	require.NoError(t, r.Close())
	require.Zero(t, r.Stats().Dropped)
	all, _, err := readAll(out.Bytes())
	require.NoError(t, err)
	count := map[string]int{}
	for _, l := range all {
		count[string(l.Key)]++
	}
	require.InDelta(t, keys/10, len(count), 5*math.Sqrt(keys*0.1*0.9))
	for key, n := range count {
		require.Equal(t, times, n, key)
	}
}

// A gate is a writer that waits after the header until it is opened.
type gate struct {
	out  bytes.Buffer
	open chan struct{}
}

func (g *gate) Write(p []byte) (int, error) {
	if g.out.Len() > 0 {
		<-g.open
	}
	return g.out.Write(p)
}

func TestALookupNeverWaitsForTheWriter(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	r, err := NewRecorder(g, Options{Keys: true})
	require.NoError(t, err)
	const n = 2 * numChunks * frameSize / 1000 // twice what there is room for
	key := string(make([]byte, 1000))
	for range n {
		record(r, key, true, true)
	}
	close(g.open)
	require.NoError(t, r.Close())
	s := r.Stats()
	require.EqualValues(t, n, s.Recorded+s.Dropped)
	require.Greater(t, s.Dropped, uint64(n/3))
	require.Greater(t, s.Recorded, uint64(n/3))
	all, read, err := readAll(g.out.Bytes())
	require.NoError(t, err)
	require.EqualValues(t, s.Recorded, len(all))
	require.Equal(t, s.Dropped, read.Dropped())
}

func TestManyGoroutinesRecordWhileItIsClosed(t *testing.T) {
	var out bytes.Buffer
	r, err := NewRecorder(&out, Options{Keys: true})
	require.NoError(t, err)
	const each = 3000
	var all, first sync.WaitGroup
	for g := range 6 {
		first.Add(1)
		all.Go(func() {
			for i := range 2 * each {
				if i == each {
					first.Done()
				}
				record(r, fmt.Sprint(g, i), i%2 == 0, true)
			}
		})
	}
	first.Wait()
	require.NoError(t, r.Close())
	all.Wait()
	lookups, read, err := readAll(out.Bytes())
	require.NoError(t, err)
	require.GreaterOrEqual(t, uint64(len(lookups))+read.Dropped(), uint64(6*each))
	seen := map[string]bool{}
	for _, l := range lookups {
		require.False(t, seen[string(l.Key)])
		seen[string(l.Key)] = true
	}
}

// A failing writer takes so many bytes.
type failing struct{ room int }

var errFull = errors.New("no space left")

func (f *failing) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestAFailedWriteIsReported(t *testing.T) {
	_, err := NewRecorder(&failing{}, Options{})
	require.ErrorIs(t, err, errFull)
	r, err := NewRecorder(&failing{room: headerSize + 10}, Options{})
	require.NoError(t, err)
	record(r, "a", true, true)
	require.ErrorIs(t, r.Close(), errFull)
	require.Equal(t, Stats{Dropped: 1, Bytes: headerSize}, r.Stats())
}

func TestEveryCutIsToldFromDamage(t *testing.T) {
	data := goldenTrace(t, true)
	for n := range data {
		all, _, err := readAll(data[:n])
		switch {
		case n < len(magic):
			require.ErrorIs(t, err, ErrNotTrace, n)
		case n < headerSize:
			require.ErrorIs(t, err, base.ErrCorruption, n)
		default:
			require.ErrorIs(t, err, ErrUnfinished, n)
			require.Zero(t, len(all)%3, "whole frames")
		}
	}
	_, _, err := readAll(append(bytes.Clone(data), 0))
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, "after the end")
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	data := goldenTrace(t, false)
	for bit := range 8 * len(data) {
		damaged := bytes.Clone(data)
		damaged[bit/8] ^= 1 << (bit % 8)
		_, _, err := readAll(damaged)
		if bit/8 < len(magic) {
			require.ErrorIs(t, err, ErrNotTrace, bit)
			continue
		}
		require.ErrorIs(t, err, base.ErrCorruption, bit)
		require.NotErrorIs(t, err, ErrNewerFormat, bit)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	for _, keys := range []bool{true, false} {
		r, err := NewRecorder(io.Discard, Options{Keys: keys})
		require.NoError(t, err)
		key := []byte("0123456789abcdef")
		require.Zero(t, testing.AllocsPerRun(1000, func() { r.Record(key, 1, true, true) }))
		require.NoError(t, r.Close())
	}
}

func FuzzReader(f *testing.F) {
	for _, name := range goldenNames {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data)
		f.Add(data[:len(data)-5])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, _, err := readAll(data)
		require.LessOrEqual(t, len(all), len(data), "a lookup takes a byte or more")
		if err == nil || errors.Is(err, ErrNotTrace) || errors.Is(err, ErrNewerFormat) ||
			errors.Is(err, ErrUnfinished) {
			return
		}
		require.ErrorIs(t, err, base.ErrCorruption)
	})
}

// FuzzFrame gives the reader frames whose checksums are right.
func FuzzFrame(f *testing.F) {
	c := newChunk()
	c.add(7, []byte("key"), 3, bitFound)
	f.Add(byte(typeLookups), true, c.seal(1, headerSize, 0)[frameHeaderSize:])
	for _, keys := range []bool{true, false} {
		c = newChunk()
		for _, s := range goldenScans(false) {
			c.addScan(7, &s, keys)
		}
		f.Add(byte(typeScans), keys, c.seal(1, headerSize, 0)[frameHeaderSize:])
	}
	f.Add(byte(typeEnd), false, make([]byte, endSize))
	f.Add(byte(typeLookups), false, append(make([]byte, 16), 1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, kind byte, keys bool, payload []byte) {
		h := Header{Version: version, ID: 1, Start: time.Unix(0, 0), Keys: keys, OneIn: 1}
		frame := append(make([]byte, frameHeaderSize), payload...)
		sealFrame(frame, kind, h.ID, headerSize)
		data := append(h.encode(), frame...)
		all, r, err := readAll(data)
		require.LessOrEqual(t, len(all), len(payload))
		if r != nil {
			require.LessOrEqual(t, r.Scans(), uint64(len(payload)))
		}
		scans, scanErr := readScans(data)
		require.Equal(t, errors.Is(err, base.ErrCorruption), errors.Is(scanErr, base.ErrCorruption))
		for i, s := range scans {
			require.True(t, i == 0 || s.At >= scans[i-1].At)
			require.LessOrEqual(t, s.Common, min(s.Start.Size, s.End.Size))
			require.LessOrEqual(t, len(s.Start.Key), len(payload))
		}
		for i := range all {
			require.True(t, i == 0 || all[i].At >= all[i-1].At)
			require.GreaterOrEqual(t, all[i].At, time.Duration(0))
		}
		require.True(t, err == nil || errors.Is(err, ErrUnfinished) || errors.Is(err, base.ErrCorruption), err)
	})
}

func BenchmarkRecord(b *testing.B) {
	for _, o := range []Options{{}, {Keys: true}, {OneIn: 1000}} {
		b.Run(fmt.Sprintf("keys=%t/one-in=%d", o.Keys, max(1, o.OneIn)), func(b *testing.B) {
			r, err := NewRecorder(io.Discard, o)
			require.NoError(b, err)
			key := []byte("0123456789abcdef")
			hash := uint64(1)
			for b.Loop() {
				hash += mixer
				r.Record(key, hash, true, true)
			}
			require.NoError(b, r.Close())
			s := r.Stats()
			b.ReportMetric(float64(s.Dropped)/float64(b.N), "dropped/op")
		})
	}
}
