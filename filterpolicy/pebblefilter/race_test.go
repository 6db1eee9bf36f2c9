//go:build race

package pebblefilter_test

func init() { modelSeeds = 1 }
