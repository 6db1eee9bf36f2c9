package siftwalletdb

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/btcsuite/btcwallet/walletdb/walletdbtest"

	"github.com/siftkv/siftkv/kv"
)

// TestInterface runs the tests that walletdb has for drivers, with arguments of each kind.
func TestInterface(t *testing.T) {
	for name, args := range map[string][]any{
		"directory": {},
		"options":   {&kv.Options{MemoryLimit: 16 << 20, MemtableSize: 64 << 10}},
		"bdb's":     {true, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			walletdbtest.TestInterface(t, Name, append([]any{filepath.Join(t.TempDir(), "db")}, args...)...)
		})
	}
}
