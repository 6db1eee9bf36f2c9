package cuckootable

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Lookup returns the one command that reads all that a shard knows of a key: BITFIELD_RO of its mark
// and of the key's two buckets. Its reply goes to Copies.
func (s Shape) Lookup(key string, p Place) []any {
	return s.bucket(s.bucket(s.probe(key), p.I), p.J)
}

// Probe returns the command that reads only a shard's mark and tag. Its reply goes to Whole.
func (s Shape) Probe(key string) []any { return append(s.probe(key), "GET", "u32", tagAt*8) }

func (s Shape) probe(key string) []any {
	args := make([]any, 0, 2+3*(1+2*s.wordsPerBucket()))
	return append(args, "BITFIELD_RO", key, "GET", "i64", s.markAt()*8)
}

// bucket appends what reads a bucket: one number of four slots, or two numbers of two if four are
// more than 64 bits.
func (s Shape) bucket(args []any, bucket uint32) []any {
	words := s.wordsPerBucket()
	width := slots / words * int(s.Bits)
	at := headerSize*8 + int(bucket)*slots*int(s.Bits)
	for word := range words {
		args = append(args, "GET", wordTypes[width], at+word*width)
	}
	return args
}

func (s Shape) wordsPerBucket() int {
	if slots*s.Bits > 64 {
		return 2
	}
	return 1
}

// wordTypes names BITFIELD's types by their width.
var wordTypes = func() (names [65]string) {
	for width := range names {
		names[width] = fmt.Sprintf("i%d", width)
	}
	return names
}()

// Copies decodes the reply to Lookup: how often the class of the key is there, 0 for a key that
// certainly is not. An error is ErrLost; then nothing is known of the key.
func (s Shape) Copies(reply []int64, p Place) (int, error) {
	words := s.wordsPerBucket()
	if len(reply) != 1+2*words {
		return 0, fmt.Errorf("%w: Redis answered %d numbers instead of %d", ErrLost, len(reply), 1+2*words)
	}
	if err := s.marked(reply[0]); err != nil {
		return 0, err
	}
	n := 0
	for _, word := range reply[1:] {
		for lane := range slots / words {
			if uint64(word)>>(uint32(lane)*s.Bits)&s.values() == uint64(p.Fingerprint) {
				n++
			}
		}
	}
	return n, nil
}

// Whole decodes the reply to Probe of a shard with a tag. An error is ErrLost.
func (s Shape) Whole(reply []int64, tag uint32) error {
	if len(reply) != 2 {
		return fmt.Errorf("%w: Redis answered %d numbers instead of 2", ErrLost, len(reply))
	}
	if err := s.marked(reply[0]); err != nil {
		return err
	}
	if found := bits.ReverseBytes32(uint32(reply[1])); found != 0 && found != tag { // BITFIELD is big-endian
		return fmt.Errorf("%w: it is the shard of another key", ErrForeign)
	}
	return nil
}

// marked returns an error unless a number is the mark.
func (s Shape) marked(number int64) error {
	if number == 0 {
		return fmt.Errorf("%w: it is missing or short, or was made by a stray write", ErrLost)
	}
	var mark [markSize]byte
	binary.BigEndian.PutUint64(mark[:], uint64(number))
	if string(mark[:]) != string(s.mark()) {
		return fmt.Errorf("%w: its mark is %q, not %q", ErrForeign, mark, s.mark())
	}
	return nil
}
