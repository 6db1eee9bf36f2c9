//go:build !race

package kv

const raceFactor = 1
