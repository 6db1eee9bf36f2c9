package siftvault_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/sdk/physical"
	"github.com/hashicorp/vault/sdk/physical/file"
	"github.com/stretchr/testify/require"
)

const entries = 10_000

// BenchmarkBackends measures this backend beside Vault's own file backend, which has a file for each entry
// and does not sync them.
func BenchmarkBackends(b *testing.B) {
	for _, c := range []struct {
		name string
		open func(b *testing.B) physical.Backend
	}{
		{"siftkv", func(b *testing.B) physical.Backend { return open(b, b.TempDir()) }},
		{"file", func(b *testing.B) physical.Backend {
			f, err := file.NewFileBackend(map[string]string{"path": b.TempDir()}, hclog.NewNullLogger())
			require.NoError(b, err)
			return f
		}},
	} {
		b.Run("store="+c.name+"/op=put", func(b *testing.B) {
			s := c.open(b)
			for n := 0; b.Loop(); n++ {
				put(b, s, n)
			}
		})
		s := c.open(b)
		for n := range entries {
			put(b, s, n)
		}
		b.Run("store="+c.name+"/op=get", func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				e, err := s.Get(b.Context(), key(n%entries))
				if err != nil || e == nil {
					b.Fatal(e, err)
				}
			}
		})
		b.Run("store="+c.name+"/op=absent", func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				if e, err := s.Get(b.Context(), key(n%entries)+"x"); err != nil || e != nil {
					b.Fatal(e, err)
				}
			}
		})
		b.Run("store="+c.name+"/op=list", func(b *testing.B) {
			for b.Loop() {
				names, err := s.List(b.Context(), "secret/")
				if err != nil || len(names) != 100 {
					b.Fatal(len(names), err)
				}
			}
		})
	}
}

func put(b *testing.B, s physical.Backend, n int) {
	value := make([]byte, 200)
	binary.LittleEndian.PutUint64(value, uint64(n))
	if err := s.Put(b.Context(), &physical.Entry{Key: key(n), Value: value}); err != nil {
		b.Fatal(err)
	}
}

// key spreads entries over a hundred directories.
func key(n int) string { return fmt.Sprintf("secret/%02d/%06d", n%100, n) }
