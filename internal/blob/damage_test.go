package blob

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/stretchr/testify/require"
)

func fewValues() (vs []value) {
	for i := range 12 {
		vs = append(vs, value{key: fmt.Appendf(nil, "key/%02d", i), seq: base.SeqNum(100 - i), expiry: uint64(i % 2),
			bytes: bytes.Repeat([]byte{byte(i)}, 11*i)})
	}
	return vs
}

func TestGoldenFile(t *testing.T) {
	data, _ := writeValues(t, compression.None, fewValues())
	golden.File(t, filepath.Join("testdata", "v1.blob"), data)
}

// requireRightOrError requires of all reads of a file that may be damaged the right value, or an
// error that names the file and a place in it. It returns how many values could not be read.
func requireRightOrError(t *testing.T, data []byte, vs []value) (lost int) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(data), int64(len(data)), ReaderOptions{Name: "000014.blob", ID: testID})
	if err != nil {
		require.ErrorIs(t, err, base.ErrCorruption)
		return len(vs)
	}
	for _, v := range vs {
		got, err := r.AppendValue([]byte("x"), v.key, v.handle)
		if err == nil {
			require.True(t, "x"+string(v.bytes) == string(got))
			continue
		}
		var c *base.CorruptionError
		require.True(t, errors.As(err, &c), "%v", err)
		require.Equal(t, "000014.blob", c.File)
		require.GreaterOrEqual(t, c.Offset, v.handle.Offset)
		require.Less(t, c.Offset, v.handle.Offset+v.handle.Length)
		require.Equal(t, "x", string(got))
		lost++
	}
	return lost
}

func TestEveryBitFlipIsFound(t *testing.T) {
	scale.OneGoroutine(t, "a reader in one goroutine")
	vs := fewValues()
	data, _ := writeValues(t, compression.None, vs)
	for at := range data {
		for bit := range 8 {
			bad := bytes.Clone(data)
			bad[at] ^= 1 << bit
			records := at >= headerSize && at < len(data)-footerSize
			lost := requireRightOrError(t, bad, vs)
			require.LessOrEqual(t, lost, 1)
			require.Equal(t, records, lost == 1, "byte %d", at)
			err := open(t, bad).Verify(14, nil)
			require.Error(t, err, "byte %d", at)
			require.ErrorIs(t, err, base.ErrCorruption)
			require.NotErrorIs(t, err, base.ErrNewerFormat)
		}
	}
}

func TestTruncatedFilesAreErrors(t *testing.T) {
	vs := fewValues()
	data, _ := writeValues(t, compression.None, vs)
	for n := range data {
		requireRightOrError(t, data[:n], vs)
		if n >= MinSize {
			require.ErrorIs(t, open(t, data[:n]).Verify(14, nil), base.ErrCorruption)
		}
		_, err := NewReader(bytes.NewReader(data), int64(n), ReaderOptions{ID: testID, Size: int64(len(data))})
		require.ErrorIs(t, err, base.ErrCorruption)
	}
}

// A good record in a wrong place, or of another file, is no answer.
func TestSwappedRecordsAndFilesAreErrors(t *testing.T) {
	vs := []value{{key: []byte("a"), bytes: []byte("12345678")}, {key: []byte("b"), bytes: []byte("abcdefgh")}}
	data, _ := writeValues(t, compression.None, vs)
	a, b := vs[0].handle, vs[1].handle
	require.Equal(t, a.Length, b.Length)
	swapped := bytes.Clone(data)
	copy(swapped[a.Offset:], data[b.Offset:b.Offset+b.Length])
	copy(swapped[b.Offset:], data[a.Offset:a.Offset+a.Length])
	require.Equal(t, 2, requireRightOrError(t, swapped, vs))
	require.ErrorIs(t, open(t, swapped).Verify(14, nil), base.ErrCorruption)

	r := open(t, data)
	_, err := r.AppendValue(nil, vs[0].key, b)
	require.ErrorContains(t, err, `of key "b", and its handle of "a"`)
	other, err := NewReader(bytes.NewReader(data), int64(len(data)), ReaderOptions{ID: testID + 1})
	require.NoError(t, err)
	_, err = other.AppendValue(nil, vs[0].key, a)
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, other.Verify(14, nil), "this is another file")
	for _, change := range []func(h *Handle){
		func(h *Handle) { h.Size++ }, func(h *Handle) { h.Length-- }, func(h *Handle) { h.Offset++ },
		func(h *Handle) { h.Offset = int64(len(data)) - footerSize }, func(h *Handle) { h.Length = 1 << 50 },
		func(h *Handle) { h.Offset = 0 }, func(h *Handle) { h.Length = 0 }, func(h *Handle) { h.Length = MinRecord },
	} {
		h := a
		change(&h)
		_, err := r.AppendValue(nil, vs[0].key, h)
		require.ErrorIs(t, err, base.ErrCorruption, "%v", h)
		_, err = r.OpenStream(vs[0].key, h)
		require.ErrorIs(t, err, base.ErrCorruption, "%v", h)
	}
}

// After a damaged record a scan finds the next one, also where lengths are not to be trusted, and in
// files without an end.
func TestSkipFindsWhatIsNotDamaged(t *testing.T) {
	scale.OneGoroutine(t, "a salvage has a single goroutine")
	rng := rand.New(rand.NewPCG(2, 2))
	vs := append(fewValues(), value{key: []byte("long"), bytes: make([]byte, 3*scanSize)},
		value{key: []byte("longer"), bytes: []byte("last")})
	data, _ := writeValues(t, compression.None, vs)
	scan := func(data []byte) (keys []string) {
		s, err := NewScanner(open(t, data))
		require.NoError(t, err)
		for s.Next() || s.Skip() {
			require.NoError(t, s.Err())
			if s.Check() == nil {
				keys = append(keys, string(s.Record().Key))
			}
		}
		return keys
	}
	var all []string
	for _, v := range vs {
		all = append(all, string(v.key))
	}
	require.Equal(t, all, scan(data))
	for i, v := range vs {
		others := append(append([]string(nil), all[:i]...), all[i+1:]...)
		for range 30 {
			bad := bytes.Clone(data)
			bad[v.handle.Offset+rng.Int64N(v.handle.Length)] ^= 1 << rng.IntN(8)
			require.Equal(t, others, scan(bad))
		}
		end := v.handle.Offset + v.handle.Length
		require.Equal(t, all[:i+1], scan(append(bytes.Clone(data[:end]), make([]byte, footerSize)...)))
	}
}

func TestVerifyHoldsTheFooterAgainstTheRecords(t *testing.T) {
	data, info := writeValues(t, compression.None, fewValues())
	for _, change := range []func(i *Info){
		func(i *Info) { i.Records++ }, func(i *Info) { i.KeyBytes-- }, func(i *Info) { i.ValueBytes++ },
	} {
		i := info
		change(&i)
		bad := i.appendFooter(bytes.Clone(data[:len(data)-footerSize]))
		require.ErrorContains(t, open(t, bad).Verify(14, nil), "the footer says")
	}
	seen := 0
	require.NoError(t, open(t, data).Verify(14, func(h Handle, rec Record) error {
		require.Equal(t, fewValues()[seen].key, rec.Key)
		seen++
		return nil
	}))
	require.Equal(t, 12, seen)
	stop := errors.New("stop")
	require.Equal(t, stop, open(t, data).Verify(14, func(Handle, Record) error { return stop }))
}

func TestVerifyFindsKeysOutOfOrder(t *testing.T) {
	vs := []value{{key: []byte("a")}, {key: []byte("c")}, {key: []byte("d")}}
	data, _ := writeValues(t, compression.None, vs)
	at := vs[1].handle.Offset
	p, err := decodePrefix(data[at:])
	require.NoError(t, err)
	p.Key = []byte("x")
	copy(data[at:], p.appendHead(nil, testID, at))
	require.ErrorContains(t, open(t, data).Verify(14, nil), `key "d" stands after "x"`)
}

func TestANewerFormatIsRefusedByName(t *testing.T) {
	newer, _ := writeValues(t, compression.None, nil)
	binary.LittleEndian.PutUint32(newer[8:], 2)
	binary.LittleEndian.PutUint32(newer[24:], base.Checksum(0, 0, newer[:24]))
	_, err := ReadInfo(bytes.NewReader(newer), int64(len(newer)), "000014.blob")
	require.ErrorIs(t, err, base.ErrNewerFormat)
	require.NotErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, "000014.blob")
}

func TestHandlesComeBack(t *testing.T) {
	h := Handle{File: 14, Ordinal: 3, Offset: 4096, Length: 16500, Size: 16384}
	for _, kind := range []base.Kind{base.KindSetSeparated, base.KindSetTTLSeparated} {
		var b []byte
		if kind.Expires() {
			b = base.AppendExpiry(b, 77)
		}
		got, expiry, err := HandleOf(kind, h.Append(b))
		require.NoError(t, err)
		require.Equal(t, h, got)
		require.Equal(t, kind.Expires(), expiry == 77)
	}
	_, _, err := HandleOf(base.KindSetTTLSeparated, make([]byte, 7))
	require.ErrorIs(t, err, errHandle)
	require.Equal(t, "record 3 of file 14, 16500 bytes at offset 4096", h.String())
	good := h.Append(nil)
	for name, bad := range map[string][]byte{
		"longer": append(bytes.Clone(good), 0), "shorter": good[:len(good)-1], "empty": nil,
		"no file":           Handle{Offset: 32, Length: 8}.Append(nil),
		"in the header":     Handle{File: 1, Offset: 31, Length: 8}.Append(nil),
		"no record":         Handle{File: 1, Offset: 32, Length: 7}.Append(nil),
		"too large a value": Handle{File: 1, Offset: 32, Length: 8, Size: MaxValue + 1}.Append(nil),
		"too far":           Handle{File: 1, Offset: maxFile + 1, Length: 8}.Append(nil),
	} {
		_, err := DecodeHandle(bad)
		require.ErrorIs(t, err, errHandle, name)
	}
}
