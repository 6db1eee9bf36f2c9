//go:build !linux

package kv

import "testing"

// dropPages is Linux's.
func dropPages(b *testing.B, _ string) { b.Skip("the system cannot be asked to forget pages") }
