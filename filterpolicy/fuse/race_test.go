//go:build race

package fuse_test

func init() { raceDetector = true }
