package filterpolicy

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// A Prefix extracts the part of a key that scans stay within, so that a file's filter can
// hold these parts too and a scan within one prefix can skip files.
//
// The key must begin with the prefix, and every key that begins with it must have the same prefix. Then the keys of a
// prefix are exactly those between the prefix and its successor. Implementations are safe for concurrent use.
type Prefix interface {
	// Name identifies the extractor in files. Another function needs another name.
	Name() string
	// Prefix returns the first part of key, a slice of it, and false for keys that have none.
	Prefix(key []byte) (prefix []byte, ok bool)
}

// ParsePrefix makes an extractor from its name:
//
//	fixed:N          the first N bytes, 1 to 1024; shorter keys have no prefix
//	delimiter:C      all up to the first C, with it; C is one character of ASCII
//	delimiter:C,N    all up to the Nth C, 1 to 64
//
// These are HBase's cases: a row key of fixed length (ROWPREFIX_FIXED_LENGTH), and a row
// key that ends where the column begins (ROW, as opposed to ROWCOL).
func ParsePrefix(name string) (Prefix, error) {
	const example = "fixed:8"
	kind, args, _ := strings.Cut(name, ":")
	switch kind {
	case "fixed":
		n, err := spec.ParseInt("the length of a prefix", args, 1, 1024)
		if err != nil {
			return nil, spec.Errorf(name, example, "%v", err)
		}
		return fixedPrefix(n), nil
	case "delimiter":
		if args == "" || args[0] >= 0x80 {
			return nil, spec.Errorf(name, "delimiter:/", "the delimiter must be one character of ASCII")
		}
		d := delimitedPrefix{delimiter: args[0], count: 1}
		if rest := args[1:]; rest != "" {
			count, found := strings.CutPrefix(rest, ",")
			n, err := spec.ParseInt("the number of delimiters", count, 1, 64)
			if err != nil || !found {
				return nil, spec.Errorf(name, "delimiter:/,2",
					"its form is delimiter:C or delimiter:C,N with N from 1 to 64")
			}
			d.count = n
		}
		return d, nil
	}
	return nil, spec.Errorf(name, example, "unknown extractor; there are fixed:N and delimiter:C,N")
}

type fixedPrefix int

func (n fixedPrefix) Name() string { return "fixed:" + strconv.Itoa(int(n)) }

func (n fixedPrefix) Prefix(key []byte) ([]byte, bool) {
	if len(key) < int(n) {
		return nil, false
	}
	return key[:n], true
}

type delimitedPrefix struct {
	delimiter byte
	count     int
}

func (d delimitedPrefix) Name() string {
	name := "delimiter:" + string(rune(d.delimiter))
	if d.count > 1 {
		name += "," + strconv.Itoa(d.count)
	}
	return name
}

func (d delimitedPrefix) Prefix(key []byte) ([]byte, bool) {
	end := 0
	for range d.count {
		i := bytes.IndexByte(key[end:], d.delimiter)
		if i < 0 {
			return nil, false
		}
		end += i + 1
	}
	return key[:end], true
}

// WithinPrefix returns the prefix that all keys of [lo, hi) have, if p gives them one; a nil bound is none.
func WithinPrefix(p Prefix, lo, hi []byte) (prefix []byte, ok bool) {
	if lo == nil || hi == nil {
		return nil, false
	}
	prefix, ok = p.Prefix(lo)
	if !ok {
		return nil, false
	}
	// hi may be at most the successor of prefix: what begins with prefix ends there.
	if bytes.HasPrefix(hi, prefix) {
		return prefix, true
	}
	last := len(prefix) - 1
	for last >= 0 && prefix[last] == 0xff {
		last--
	}
	if last < 0 {
		return prefix, bytes.Compare(hi, prefix) >= 0
	}
	successor := append(bytes.Clone(prefix[:last]), prefix[last]+1)
	return prefix, bytes.Compare(hi, successor) <= 0
}
