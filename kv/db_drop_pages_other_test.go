//go:build !linux

package kv

import "testing"

// dropPages is Linux's.
func dropPages(b *testing.B, _ string) { b.Skip("the system cannot be asked to forget pages") }

// dropAllPages is Linux's.
func dropAllPages(b *testing.B, dir string) { dropPages(b, dir) }
