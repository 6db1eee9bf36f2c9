package scalable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/sizing"
)

// A set is written as an envelope of family 's', version 1. The layers follow, from the first to
// the last, each in an envelope of its own, as packages bloom and blocked write their sets. The
// payload of the first envelope is
//
//	rate        f64   promised
//	tightening  f64   share of a layer's rate that the next one has
//	growth      f64   share of a layer's keys that the next one has
//	first       u64   keys of the first layer
//	blocked     u64   1 if layers are to be blocked, else 0
//	kinds       rest  the family letters of the layers, at least one: 'b' or 'l'
//
// Each layer has the capacity that follows from these numbers, and the fewest bytes for that. A
// reader refuses another: otherwise the next layer, which follows from them too, could be any
// number of times as large as what was read.
var format = frame.Envelope{Family: frame.Scalable, Version: 1, Made: "scalable.New",
	MaxPayload: headLen + maxLayers}

const (
	headLen = 40

	// maxLayers bounds what a description may claim. Growth 1 gets there first,
	// and is absurdly slow by then.
	maxLayers = 1 << 20
)

// parts returns the payload of the first envelope. A zero set has none.
func (s *Set) parts() [][]byte {
	if len(s.layers) == 0 {
		return nil
	}
	sh := s.shape
	head := make([]byte, 0, headLen+len(s.layers))
	for _, x := range []float64{sh.rate, sh.tightening, sh.growth} {
		head = binary.LittleEndian.AppendUint64(head, math.Float64bits(x))
	}
	head = binary.LittleEndian.AppendUint64(head, uint64(sh.first))
	flag := uint64(0)
	if sh.blocked {
		flag = 1
	}
	head = binary.LittleEndian.AppendUint64(head, flag)
	for _, l := range s.layers {
		head = append(head, byte(l.kind()))
	}
	return [][]byte{head}
}

// parse returns the shape of a set and the kinds of its layers.
func parse(head []byte) (sh shape, kinds []byte, err error) {
	if len(head) <= headLen {
		return sh, nil, frame.Corruptf("%d bytes do not describe a scalable set", len(head))
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(head[8*i:]) }
	if word(3) > sizing.MaxKeys || word(4) > 1 {
		return sh, nil, frame.Corruptf("a scalable set that begins with %d keys and has flag %d cannot be",
			word(3), word(4))
	}
	sh = shape{
		rate: math.Float64frombits(word(0)), tightening: math.Float64frombits(word(1)),
		growth: math.Float64frombits(word(2)),
		first:  int(word(3)), blocked: word(4) == 1,
	}
	if err := sh.check(); err != nil {
		return sh, nil, frame.Corruptf("a set that cannot be: %v", err)
	}
	return sh, head[headLen:], nil
}

// WriteTo writes the set's bytes to w, without a copy of them.
func (s *Set) WriteTo(w io.Writer) (n int64, err error) {
	n, err = format.Write(w, s.parts())
	for i := 0; i < len(s.layers) && err == nil; i++ {
		var m int64
		m, err = s.layers[i].WriteTo(w)
		n += m
	}
	return n, err
}

// ReadFrom makes s the set that it reads from r, up to the set's last byte. An error that is not
// one of r matches filterpolicy.ErrCorrupt; any leaves s as it was.
func (s *Set) ReadFrom(r io.Reader) (n int64, err error) {
	var sh shape
	var kinds []byte
	n, err = format.Read(r, func(head []byte) (err error) {
		sh, kinds, err = parse(head)
		return err
	})
	if err != nil {
		return n, err
	}
	var layers []layer
	for i, kind := range kinds {
		l, m, err := readLayer(r, kind)
		n += m
		if err != nil {
			return n, fmt.Errorf("layer %d: %w", i, err)
		}
		if want := sh.layerKeys(i); l.Cap() != want {
			return n, frame.Corruptf("layer %d was made for %d keys, and must have been for %d", i, l.Cap(), want)
		}
		if l.Size() < sh.leastSize(i) {
			return n, frame.Corruptf("layer %d has %d bytes, and cannot hold %d keys at the promised rate", i,
				l.Size(), l.Cap())
		}
		layers = append(layers, l)
	}
	*s = Set{layers, sh}
	return n, nil
}

func readLayer(r io.Reader, kind byte) (l layer, n int64, err error) {
	l, ok := zeroLayer(frame.Family(kind))
	if !ok {
		return l, 0, frame.Corruptf("kind %q is neither bloom nor blocked", kind)
	}
	n, err = l.ReadFrom(r)
	return l, n, err
}

// MarshalBinary returns the set's bytes.
func (s *Set) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

// AppendBinary appends the set's bytes to dst.
func (s *Set) AppendBinary(dst []byte) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	buf.Grow(s.Size() + 128*(len(s.layers)+1))
	if _, err := s.WriteTo(buf); err != nil {
		return dst, err
	}
	return buf.Bytes(), nil
}

// UnmarshalBinary makes s the set of data, which it checks and does not keep. An
// error matches filterpolicy.ErrCorrupt and leaves s as it was.
func (s *Set) UnmarshalBinary(data []byte) error {
	var read Set
	n, err := read.ReadFrom(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if n != int64(len(data)) {
		return frame.Corruptf("the set ends after %d of %d bytes", n, len(data))
	}
	*s = read
	return nil
}
