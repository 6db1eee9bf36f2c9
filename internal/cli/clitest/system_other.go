//go:build !unix

package clitest

import (
	"errors"
	"io/fs"
	"os/exec"
)

// What the tests of programs need of Unix is not elsewhere: the tests are built, and fail.

func limitFileSize(uint64) error { return errors.ErrUnsupported }

func runAs(*exec.Cmd, uint32) {}

func makeDevice(string, int, int) error { return errors.ErrUnsupported }

func ownerOf(fs.FileInfo) [2]uint32 { return [2]uint32{} }

func makePipe(string) error { return errors.ErrUnsupported }
