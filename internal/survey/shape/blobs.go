package shape

import (
	"fmt"
	"strings"

	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/survey"
)

// BlobSums are sums over the blob files of a store: what metrics.Blobs has of the moment.
type BlobSums struct {
	Files       int    `json:"files"`
	Bytes       int64  `json:"bytes"`
	Records     uint64 `json:"records"`
	ValueBytes  uint64 `json:"value_bytes"`  // of the values of all records, as they were given
	LiveRecords uint64 `json:"live_records"` // that a sorted file refers to
	LiveBytes   uint64 `json:"live_bytes"`   // of these
	Garbage     uint64 `json:"garbage"`      // bytes of the others
	HiddenBytes uint64 `json:"hidden_bytes"` // of live_bytes, what files above the last level refer to
}

// sumBlobs sums up the blob files that the manifest lists, and what the store's tables, and those of its last
// level, refer to. It returns nil if there are none.
func sumBlobs(s *survey.Store, all, last *Level) *BlobSums {
	if s.Manifest == nil || len(s.Manifest.Blobs) == 0 {
		return nil
	}
	sums := &BlobSums{LiveRecords: all.blobRecords, LiveBytes: all.BlobBytes,
		HiddenBytes: all.BlobBytes - last.BlobBytes}
	records := uint64(0)
	for _, b := range s.Manifest.Blobs {
		sums.Files++
		sums.Bytes += b.Size
		sums.Records += b.Records
		sums.ValueBytes += b.ValueBytes
		records += uint64(b.Size) - min(blob.MinSize, uint64(b.Size))
	}
	sums.Garbage = records - min(sums.LiveBytes, records) // more is damage, which is said elsewhere
	return sums
}

func (s *BlobSums) write(b *strings.Builder) {
	if s == nil {
		return
	}
	fmt.Fprintf(b, "blob files: %d of %d bytes, %d values of %d bytes\n", s.Files, s.Bytes, s.Records, s.ValueBytes)
	space := 0.0
	if s.LiveBytes > 0 {
		space = float64(s.Bytes) / float64(s.LiveBytes)
	}
	fmt.Fprintf(b, "  referred to: %d values in %d bytes, %d bytes of them above the last level; garbage: %d bytes; "+
		"space %.2f\n\n", s.LiveRecords, s.LiveBytes, s.HiddenBytes, s.Garbage, space)
}
