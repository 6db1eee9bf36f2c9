package compaction

import (
	"bytes"
	"sort"

	"github.com/siftkv/siftkv/internal/version"
)

// Ranges have at least minRange files of the output level's size, so that few files are smaller because a range ends,
// and at most maxRange where there are threads to help.
const (
	minRange        = 2
	maxRange        = 8
	rangesPerThread = 4
	partsPerRange   = 16 // how finely the inputs are divided to find the ends of ranges
)

// NumRanges returns how many ranges a job's merge should have, if a number of threads may merge.
func (o *Options) NumRanges(j *Job, threads int) int {
	size, file := version.SizeOf(j.Tables()), o.TargetSize(j.Version, j.Output)
	switch {
	case j.Output == 0 || j.Kind.Rules().OneRange:
		return 1
	case o.RangeSize > 0:
		return int(max(size/o.RangeSize, 1))
	case threads < 2 || file == 0:
		return 1
	}
	n := min(size/(minRange*file), max(int64(rangesPerThread*threads), size/(maxRange*file)))
	return int(max(n, 1))
}

// PartSize returns the size of the parts of which a number of ranges of a job's merge are made.
func (j *Job) PartSize(ranges int) int64 {
	return version.SizeOf(j.Tables()) / int64(ranges*partsPerRange)
}

// A Part is some bytes of a merge, all of keys before End.
type Part struct {
	End  []byte
	Size int64
}

// EvenRanges returns at most n spans of about the same size, in order. They cover all keys, and have no bounds at
// their ends. It sorts the parts.
func EvenRanges(parts []Part, n int) []version.Span {
	sort.Slice(parts, func(i, j int) bool { return bytes.Compare(parts[i].End, parts[j].End) < 0 })
	size, passed := int64(0), int64(0)
	for _, p := range parts {
		size += p.Size
	}
	ranges := make([]version.Span, 1, n)
	for _, p := range parts {
		last := &ranges[len(ranges)-1]
		passed += p.Size
		due := size / int64(n) * int64(len(ranges))
		if len(ranges) < n && passed >= due && !bytes.Equal(p.End, last.Lo) {
			last.Hi = p.End
			ranges = append(ranges, version.Span{Lo: p.End})
		}
	}
	return ranges
}
