package wal

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/siftkv/siftkv/internal/vfs"
)

const benchRecord = 116 // a key of 16 bytes and a value of 100

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Sync() error                 { return nil }
func (discard) Close() error                { return nil }

// BenchmarkAppend reports the time of one record, flushed in batches: to nowhere,
// which leaves the format's own cost, and to a file of the operating system.
func BenchmarkAppend(b *testing.B) {
	for _, to := range []string{"discard", "file"} {
		for _, batch := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("%s/batch=%d", to, batch), func(b *testing.B) {
				f := vfs.WriteFile(discard{})
				if to == "file" {
					var err error
					if f, err = vfs.OS.Create(filepath.Join(b.TempDir(), "log")); err != nil {
						b.Fatal(err)
					}
				}
				w := NewWriter(f, testID)
				rec := record(1, benchRecord)
				b.SetBytes(benchRecord)
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					if err := w.Append(rec); err != nil {
						b.Fatal(err)
					}
					if n++; n%batch == 0 {
						if err := w.Flush(); err != nil {
							b.Fatal(err)
						}
					}
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

func BenchmarkNext(b *testing.B) {
	var records [][]byte
	for i := range 100_000 {
		records = append(records, record(i, benchRecord))
	}
	log := content(makeLog(b, testID, records))
	r := NewReader(log, "log", testID)
	b.SetBytes(benchRecord)
	b.ReportAllocs()
	for b.Loop() {
		_, err := r.Next()
		if errors.Is(err, io.EOF) {
			r = NewReader(log, "log", testID)
		} else if err != nil {
			b.Fatal(err)
		}
	}
}
