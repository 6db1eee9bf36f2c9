package sstable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/scale"
)

// salvageFile is a file of many blocks, and its entries.
func salvageFile(tb testing.TB, o *WriterOptions, n int) (data []byte, want map[string]string, info *FileInfo) {
	tb.Helper()
	var buf bytes.Buffer
	w := NewWriter(&buf, o)
	want = map[string]string{}
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range n {
		k, v := fmt.Sprintf("key%06d", i), fmt.Sprintf("value %d %x", i, rng.Uint64())
		require.NoError(tb, w.Add(base.MakeKey([]byte(k), base.SeqNum(i+1), base.KindSet), []byte(v)))
		want[k] = v
	}
	require.NoError(tb, w.AddTombstone(rangedel.Tombstone{Start: []byte("a"), End: []byte("b"), Seq: 7}))
	info, err := w.Finish()
	require.NoError(tb, err)
	return buf.Bytes(), want, info
}

// salvaged salvages data, and checks that every entry is right, and every missing
// one in a gap.
func salvaged(t *testing.T, data []byte, id uint64, want map[string]string, what string) (*Salvage, map[string]string) {
	t.Helper()
	got := map[string]string{}
	s, err := SalvageFile(bytes.NewReader(data), int64(len(data)), &SalvageOptions{Name: "f", ID: id},
		func(k base.InternalKey, value []byte) error {
			got[string(k.User)] = string(value)
			return nil
		})
	require.NoError(t, err, what)
	require.EqualValues(t, len(got), s.Entries)
	for k, v := range got {
		require.Equal(t, want[k], v, what)
	}
	for k := range want {
		if _, ok := got[k]; ok {
			continue
		}
		covered := false
		for _, g := range s.Gaps {
			covered = covered || (g.After == nil || string(g.After) <= k) && (g.Before == nil || k <= string(g.Before))
		}
		require.True(t, covered, "%s: %s is lost, and no gap has it: %+v", what, k, s.Gaps)
	}
	return s, got
}

func TestSalvageOfAWholeFile(t *testing.T) {
	for _, c := range []Compression{NoCompression, Snappy, Zstd} {
		for _, partition := range []int{0, 256} {
			data, want, info := salvageFile(t,
				&WriterOptions{BlockSize: 300, Compression: c, IndexPartition: partition, ID: 9}, 500)
			s, got := salvaged(t, data, 0, want, c.String())
			require.Equal(t, want, got)
			require.Empty(t, s.Gaps)
			require.Empty(t, s.Tail)
			require.Equal(t, info.Entries, s.Properties.Entries)
			require.Len(t, s.Tombstones, 1)

			// Without its tail, and with nothing but the id known.
			cut := data[:info.Size-info.TailSize]
			s, got = salvaged(t, cut, 9, want, "without a tail")
			require.Equal(t, want, got)
			require.Nil(t, s.Properties)
			require.Len(t, s.Gaps, 1, "what is after is not known")
			require.Nil(t, s.Gaps[0].Before)
			require.True(t, s.TombstonesLost)
		}
	}
}

func TestSalvageAroundDamage(t *testing.T) {
	scale.OneGoroutine(t, "one goroutine salvages")
	for _, c := range []Compression{NoCompression, Snappy, Zstd} {
		for _, partition := range []int{0, 256} {
			whole, want, info := salvageFile(t,
				&WriterOptions{BlockSize: 300, Compression: c, IndexPartition: partition, ID: 9}, 300)
			rng := rand.New(rand.NewPCG(5, uint64(c)))
			for n := range 60 {
				data := bytes.Clone(whole)
				what := fmt.Sprintf("%s, partition %d, round %d", c, partition, n)
				for range 1 + rng.IntN(4) {
					at, length := rng.IntN(len(data)), 1+rng.IntN(40)
					for i := at; i < min(at+length, len(data)); i++ {
						data[i] = byte(rng.Uint32())
					}
				}
				if n%3 == 0 {
					clear(data[info.Size-info.TailSize:])
				}
				_, got := salvaged(t, data, 9, want, what)
				require.Greater(t, len(got), len(want)/3, what)
			}
		}
	}
}

func TestSalvageBehindALargeHole(t *testing.T) {
	scale.OneGoroutine(t, "one goroutine salvages")
	for _, c := range []Compression{NoCompression, Snappy} {
		data, want, info := salvageFile(t, &WriterOptions{Compression: c, ID: 9}, 40_000)
		clear(data[len(data)/4 : len(data)/2])
		clear(data[info.Size-info.TailSize:])
		s, got := salvaged(t, data, 9, want, c.String())
		require.Greater(t, len(got), len(want)/2)
		require.Len(t, s.Gaps, 2, "the hole, and the end")
	}
}

func TestSalvageFindsTheIDInADamagedFooter(t *testing.T) {
	data, want, _ := salvageFile(t, &WriterOptions{BlockSize: 300, ID: 77}, 100)
	data[len(data)-footerSize] ^= 1
	s, got := salvaged(t, data, 0, want, "damaged footer")
	require.EqualValues(t, 77, s.ID)
	require.Equal(t, want, got)
	require.NotNil(t, s.Properties, "found by its form")
	require.Empty(t, s.Gaps)

	data[len(data)-footerSize+24] ^= 1
	_, err := SalvageFile(bytes.NewReader(data), int64(len(data)), nil,
		func(base.InternalKey, []byte) error { return nil })
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorContains(t, err, "id is lost")
	_, got = salvaged(t, data, 77, want, "id known")
	require.Equal(t, want, got)
}

func TestSalvageRefusesANewerFormat(t *testing.T) {
	data, _, info := salvageFile(t, nil, 10)
	makeNewer(data)
	for _, known := range []uint64{0, info.ID} {
		_, err := SalvageFile(bytes.NewReader(data), int64(len(data)), &SalvageOptions{ID: known},
			func(base.InternalKey, []byte) error { return nil })
		require.ErrorIs(t, err, ErrNewerFormat)
		require.NotErrorIs(t, err, ErrCorruption)
	}
}

// makeNewer makes a file one of the next version of the format, as far as that is known.
func makeNewer(data []byte) {
	footer := data[len(data)-footerSize:]
	binary.LittleEndian.PutUint32(footer[40:], footerSum(FormatVersion+1, footer[:40]))
	binary.LittleEndian.PutUint32(footer[44:], FormatVersion+1)
}

// A version that is damaged is not taken for a newer one, whichever of its bits it is: all entries are there.
func TestADamagedVersionIsDamage(t *testing.T) {
	whole, want, info := salvageFile(t, &WriterOptions{BlockSize: 300}, 50)
	for bit := range 32 {
		data := bytes.Clone(whole)
		data[len(data)-12+bit/8] ^= 1 << (bit % 8)
		_, err := NewReader(bytes.NewReader(data), int64(len(data)), nil)
		require.ErrorIs(t, err, ErrCorruption)
		require.NotErrorIs(t, err, ErrNewerFormat)
		_, got := salvaged(t, data, info.ID, want, "a bit of the version")
		require.Equal(t, want, got)
	}
}

func FuzzSalvage(f *testing.F) {
	for _, c := range []Compression{NoCompression, Snappy, Zstd} {
		data, _, _ := salvageFile(f, &WriterOptions{BlockSize: 100, Compression: c, ID: 9, IndexPartition: 64}, 20)
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var last base.InternalKey
		n := 0
		_, err := SalvageFile(bytes.NewReader(data), int64(len(data)), &SalvageOptions{ID: 9},
			func(k base.InternalKey, _ []byte) error {
				if n > 0 && base.Compare(last, k) >= 0 {
					t.Fatalf("%s after %s", k, last)
				}
				last, n = k.Clone(), n+1
				return nil
			})
		if err != nil && n > 0 {
			t.Fatal(err)
		}
	})
}

// A filterOfOnesOwn is a filter of an application: another under a name of its own.
type filterOfOnesOwn struct{ filterpolicy.Policy }

func (filterOfOnesOwn) Name() string { return "own" }

// A family that is not known is no damage, but its bytes are checked.
func TestAFilterOfAnUnknownFamilyIsNoDamage(t *testing.T) {
	data, want, info := salvageFile(t, &WriterOptions{Filter: filterOfOnesOwn{mustParse("bloom:10")}}, 100)
	r := openBytes(t, data, nil)
	require.ErrorIs(t, r.FilterError(), filterpolicy.ErrUnknownFamily)
	require.NoError(t, r.Verify())
	s, got := salvaged(t, data, info.ID, want, "whole")
	require.Equal(t, want, got)
	require.Empty(t, s.Tail)

	at := r.Properties().filter.offset
	data[at] ^= 1
	s, got = salvaged(t, data, info.ID, want, "a byte of the filter flipped")
	require.Equal(t, want, got)
	require.NotEmpty(t, s.Tail)
}

// footerless returns data with a piece after it that has the place of a footer and
// names an id.
func footerless(data []byte, id uint64) []byte {
	raw := bytes.Repeat([]byte{0xab}, footerSize)
	binary.LittleEndian.PutUint64(raw[24:], id)
	return append(bytes.Clone(data), raw...)
}

func TestSalvageBelievesAnIDThatSeveralBlocksConfirm(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	garbage := make([]byte, 1000)
	for i := range garbage {
		garbage[i] = byte(rng.Uint32())
	}
	data, want, info := salvageFile(t, &WriterOptions{BlockSize: 300, ID: 77, Compression: NoCompression,
		Filter: mustParse("none")}, 100)
	r := openBytes(t, data, nil)
	_, one := r.index.Block(0)
	second, length := r.index.Block(1)
	noise := appendTrailer(bytes.Clone(garbage), 77, 0, garbage, NoCompression)
	for _, c := range []struct {
		what     string
		data     []byte
		believed bool
	}{
		{"no block", garbage, false},
		{"a checksum that is right by chance", noise, false},
		{"two of them", appendTrailer(append(noise, garbage...), 77, uint64(len(noise)), garbage, NoCompression),
			false},
		{"one block", append(bytes.Clone(data[:one]), garbage...), false},
		{"two blocks", append(bytes.Clone(data[:int(second)+length]), garbage...), true},
		{"two blocks after damage", append(bytes.Repeat([]byte{0xcd}, int(second)),
			data[second:second+uint64(2*length)+20]...), true},
		{"no data blocks, but the tail",
			append(bytes.Repeat([]byte{0xcd}, int(info.DataBytes)), data[info.DataBytes:info.Size-footerSize]...),
			true},
	} {
		file := footerless(c.data, 77)
		s, err := SalvageFile(bytes.NewReader(file), int64(len(file)), nil,
			func(k base.InternalKey, value []byte) error {
				require.Equal(t, want[string(k.User)], string(value))
				return nil
			})
		if !c.believed {
			require.ErrorIs(t, err, ErrCorruption, c.what)
			require.ErrorContains(t, err, "id is lost", c.what)
			continue
		}
		require.NoError(t, err, c.what)
		require.EqualValues(t, 77, s.ID)
	}
}

// A block whose checksum is right and which is no data block ends a gap no sooner than
// the next data block.
func TestWhatStandsInTheDataAndIsNoDataIsAGap(t *testing.T) {
	whole, want, info := salvageFile(t, &WriterOptions{BlockSize: 300, Compression: NoCompression, ID: 9}, 100)
	r := openBytes(t, whole, nil)
	for _, n := range []int{0, 3} {
		data := bytes.Clone(whole[:info.Size-info.TailSize])
		offset, length := r.index.Block(n)
		stored := data[offset : int(offset)+length-trailerSize]
		for i := range stored {
			stored[i] = 0xee
		}
		copy(data[int(offset)+len(stored):], appendTrailer(nil, 9, offset, stored, NoCompression))
		s, got := salvaged(t, data, 9, want, "without a tail")
		require.Less(t, len(got), len(want))
		require.Len(t, s.Gaps, 2)
		require.EqualValues(t, offset, s.Gaps[0].Offset)
		require.EqualValues(t, length, s.Gaps[0].Length)
	}
}
