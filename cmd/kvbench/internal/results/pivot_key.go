package results

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// A Key is the values of some settings.
type Key struct {
	Shown []string // for a reader
	exact []string // of sizes, the bytes
}

// String returns the values in one line.
func (k Key) String() string { return strings.Join(k.Shown, " ") }

// Number returns the value of a key of one number: of a filter such as bloom:10 its
// first parameter.
func (k Key) Number() (float64, bool) {
	if len(k.exact) != 1 {
		return 0, false
	}
	_, text, found := strings.Cut(k.exact[0], ":")
	if !found {
		text = k.exact[0]
	}
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil
}

// Size reports whether the key is a number of bytes.
func (k Key) Size() bool {
	_, ok := k.Number()
	return ok && strings.HasSuffix(k.Shown[0], "B")
}

// keyOf returns the values of some settings of a cell, given by their place in
// cell.Fields.
func keyOf(r *cell.Result, numbers []int) Key {
	k, fields := Key{}, cell.Fields(&r.Settings)
	for _, n := range numbers {
		k.Shown, k.exact = append(k.Shown, fields[n].Show()), append(k.exact, fields[n].Text())
	}
	return k
}

// inOrder returns the distinct keys, sorted.
func inOrder(keys []Key) []Key {
	slices.SortFunc(keys, compareKeys)
	return slices.CompactFunc(keys, func(a, b Key) bool { return compareKeys(a, b) == 0 })
}

// indexOf returns where a key is among sorted ones.
func indexOf(keys []Key, k Key) int {
	at, _ := slices.BinarySearchFunc(keys, k, compareKeys)
	return at
}

func compareKeys(a, b Key) int { return slices.CompareFunc(a.exact, b.exact, compareValues) }

// compareValues orders values as a reader expects: numbers in them by size, no filter
// before the others, and the one that never errs after them.
func compareValues(a, b string) int {
	return cmp.Or(cmp.Compare(order(a), order(b)), strings.Compare(padded(a), padded(b)), strings.Compare(a, b))
}

func order(value string) int {
	switch value {
	case "none", cell.Settled:
		return 0
	case engine.OracleFilter:
		return 2
	}
	return 1
}

var digits = regexp.MustCompile("[0-9]+")

// padded makes all numbers in a text equally long, so that they sort by size.
func padded(text string) string {
	const longest = 20 // digits of a number of 64 bits
	return digits.ReplaceAllStringFunc(text, func(number string) string {
		return strings.Repeat("0", max(0, longest-len(number))) + number
	})
}
