package lookuptrace

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
)

// recordScan records a scan that starts at a key, by the hash of that.
func recordScan(r *Recorder, s Scan) { r.RecordScan(&s, xxhash.Sum64(s.Start.Key)) }

func TestScansThatAreRecordedAreReadAgain(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		bound := rapid.Custom(func(t *rapid.T) Bound {
			if !rapid.Bool().Draw(t, "set") {
				return Bound{}
			}
			n := rapid.OneOf(rapid.IntRange(0, 10), rapid.IntRange(maxBoundSize-1, maxBoundSize+1)).Draw(t, "size")
			return Bound{Set: true, Key: bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 1, 2).Draw(t, "bytes"), n)}
		})
		scans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Scan {
			return Scan{Start: bound.Draw(t, "start"), End: bound.Draw(t, "end"),
				Entries:  rapid.Uint64Max(1<<63-1).Draw(t, "entries"),
				Backward: rapid.Bool().Draw(t, "backward"), Ended: rapid.Bool().Draw(t, "ended"),
				KeysOnly: rapid.Bool().Draw(t, "keys only")}
		}), 0, 20).Draw(t, "scans")
		keys := rapid.Bool().Draw(t, "keys")
		var out bytes.Buffer
		r, err := NewRecorder(&out, Options{Keys: keys})
		require.NoError(t, err)
		for i, s := range scans {
			record(r, string(s.Start.Key), i%2 == 0, true) // lookups lie between them
			recordScan(r, s)
		}
		require.NoError(t, r.Close())
		require.Equal(t, Stats{Recorded: uint64(len(scans)), Scans: uint64(len(scans)), Bytes: uint64(out.Len())},
			r.Stats())
		lookups, _, err := readAll(out.Bytes())
		require.NoError(t, err)
		require.Len(t, lookups, len(scans))
		read, err := readScans(out.Bytes())
		require.NoError(t, err)
		require.Len(t, read, len(scans))
		hashes := map[string]uint64{}
		left := map[string]int{}
		for _, s := range scans {
			left[nameOf(t, &s, keys, nil)]++
		}
		for _, s := range read { // each goroutine's processor has chunks of its own: the order of frames is free
			left[nameOf(t, &s, keys, hashes)]--
		}
		for name, n := range left {
			require.Zero(t, n, name)
		}
	})
}

// nameOf is what a trace keeps of a scan. Of one that is read, hashes are set.
func nameOf(t *rapid.T, s *Scan, keys bool, hashes map[string]uint64) string {
	read := hashes != nil
	word := func(b *Bound) string {
		if !b.Set {
			require.Nil(t, b.Key)
			return "-"
		}
		n := len(b.Key)
		if read {
			n = b.Size
		}
		if !keys {
			require.True(t, !read || b.Key == nil)
			return time.Duration(n).String()
		}
		return string(b.Key[:min(n, maxBoundSize)]) + time.Duration(n).String()
	}
	common := 0
	if s.Start.Set && s.End.Set {
		if common = s.Common; !read {
			common = CommonPrefix(s.Start.Key, s.End.Key)
		}
	}
	flags := string(rune('a' + s.bits()))
	return flags + word(&s.Start) + "|" + word(&s.End) + "|" + time.Duration(common).String() +
		time.Duration(s.Entries).String()
}

func TestHashesOfScansAreKeyed(t *testing.T) {
	var out bytes.Buffer
	r, err := NewRecorder(&out, Options{})
	require.NoError(t, err)
	s := Scan{Start: Bound{Set: true, Key: []byte("alice")}, End: Bound{Set: true, Key: []byte("alicf")}}
	recordScan(r, s)
	recordScan(r, s)
	record(r, "alice", true, true)
	require.NoError(t, r.Close())
	require.NotContains(t, out.String(), "alic")
	scans, err := readScans(out.Bytes())
	require.NoError(t, err)
	require.Len(t, scans, 2)
	require.Equal(t, 4, scans[0].Common)
	require.Equal(t, scans[0].Start, scans[1].Start)
	require.NotEqual(t, xxhash.Sum64String("alice"), scans[0].Start.Hash)
	lookups, _, err := readAll(out.Bytes())
	require.NoError(t, err)
	require.Equal(t, lookups[0].Hash, scans[0].Start.Hash, "a key is the same in lookups and scans")
}

// Scans and lookups that a key's hash leaves out are left out together.
func TestScansAreSampledByWhereTheyStart(t *testing.T) {
	var out bytes.Buffer
	r, err := NewRecorder(&out, Options{Keys: true, OneIn: 5})
	require.NoError(t, err)
	for i := range 1000 {
		key := []byte{byte(i), byte(i >> 8)}
		record(r, string(key), true, true)
		recordScan(r, Scan{Start: Bound{Set: true, Key: key}})
	}
	require.NoError(t, r.Close())
	lookups, _, err := readAll(out.Bytes())
	require.NoError(t, err)
	scans, err := readScans(out.Bytes())
	require.NoError(t, err)
	require.InDelta(t, 200, len(scans), 100)
	asked := map[string]bool{}
	for _, l := range lookups {
		asked[string(l.Key)] = true
	}
	require.Len(t, asked, len(scans))
	for _, s := range scans {
		require.True(t, asked[string(s.Start.Key)])
	}
}

func TestRecordScanDoesNotAllocate(t *testing.T) {
	for _, keys := range []bool{true, false} {
		r, err := NewRecorder(io.Discard, Options{Keys: keys})
		require.NoError(t, err)
		s := Scan{Start: Bound{Set: true, Key: []byte("0123456789abcdef")}, End: Bound{Set: true, Key: []byte("0123")}}
		require.Zero(t, testing.AllocsPerRun(1000, func() { r.RecordScan(&s, 1) }))
		require.NoError(t, r.Close())
	}
}

func BenchmarkRecordScan(b *testing.B) {
	r, err := NewRecorder(io.Discard, Options{})
	require.NoError(b, err)
	s := Scan{Start: Bound{Set: true, Key: []byte("0123456789abcdef")}, End: Bound{Set: true, Key: []byte("0123")}}
	hash := uint64(1)
	for b.Loop() {
		hash += mixer
		r.RecordScan(&s, hash)
	}
	require.NoError(b, r.Close())
}
